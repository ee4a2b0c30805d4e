//! Rows of single requests, from top to bottom over one axis of time: a line of text, and below it
//! what happened when.

use maud::{Markup, html};
use plimsoll_metrics::ExemplarRequest;
use plimsoll_report::format::time;
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::over_time::second;
use crate::plot::{WIDTH, place};

const TOP: f64 = 4.0;
const SIDE: f64 = 6.0;
/// Height of a row, and where in it the bar lies.
const ROW: f64 = 25.0;
const BAR: f64 = 18.0;
/// A row that is longer than this many times three quarters of them would hide them.
const MUCH_LONGER: f64 = 3.0;
/// The most characters of a target's name.
const NAME: usize = 18;

/// The rows of a chart, in milliseconds.
pub(super) struct Rows {
    x: Axis,
    count: usize,
    /// Rows that go on beyond the axis.
    cut: usize,
}

impl Rows {
    /// Rows that end at these times.
    pub(super) fn new(ends: &[f64]) -> Self {
        let mut sorted = ends.to_vec();
        sorted.sort_by(f64::total_cmp);
        let largest = sorted.last().copied().unwrap_or_default();
        let most = sorted.get((sorted.len() * 3 / 4).min(sorted.len().saturating_sub(2)));
        let limit = most.map_or(largest, |most| most * MUCH_LONGER);
        let x = Axis::from_zero(largest.min(limit));
        let cut = ends.iter().filter(|end| x.at(**end) >= 1.0 && **end > largest.min(limit));
        Self { x, count: ends.len(), cut: cut.count() }
    }

    pub(super) fn height(&self) -> f64 {
        TOP + ROW * self.count as f64 + 43.0
    }

    pub(super) fn x(&self, ms: f64) -> f64 {
        SIDE + self.x.at(ms) * (WIDTH - 2.0 * SIDE)
    }

    /// The middle of a row's bar.
    pub(super) fn y(row: usize) -> f64 {
        TOP + ROW * row as f64 + BAR
    }

    /// Says so, where rows go on beyond the axis.
    pub(super) fn note(&self) -> String {
        match self.cut {
            0 => String::new(),
            1 => " One goes on beyond the axis: an arrow marks it.".to_owned(),
            n => format!(" {n} go on beyond the axis: arrows mark them."),
        }
    }

    /// The axis below all rows.
    pub(super) fn axis(&self, title: &str) -> Markup {
        let bottom = self.height() - 37.0;
        html! {
            @for tick in self.x.ticks() {
                @let x = self.x(tick);
                @let anchor = if tick <= 0.0 { "start" } else if self.x.at(tick) > 0.97 { "end" } else { "middle" };
                line.grid x1=(place(x)) x2=(place(x)) y1=(place(TOP)) y2=(place(bottom)) {}
                text x=(place(x)) y=(place(bottom + 15.0)) text-anchor=(anchor) { (if tick <= 0.0 { "0".to_owned() } else { time(tick) }) }
            }
            text.soft x=(place(WIDTH - SIDE)) y=(place(bottom + 33.0)) text-anchor="end" { (title) }
        }
    }

    /// A part of a bar between two times.
    pub(super) fn part(&self, row: usize, class: &str, from: f64, to: f64, half: f64) -> Markup {
        self.part_at(row, class, from, to, 0.0, half)
    }

    /// The same so far below the middle of the bar.
    pub(super) fn part_at(
        &self,
        row: usize,
        class: &str,
        from: f64,
        to: f64,
        below: f64,
        half: f64,
    ) -> Markup {
        let (left, right) = (self.x(from), self.x(to));
        html! {
            rect class=(class) x=(place(left)) width=(place((right - left).max(0.6)))
                y=(place(Self::y(row) + below - half)) height=(place(2.0 * half)) {}
        }
    }

    /// What marks the end of a row: a cross where it did not complete, an arrow where it goes on.
    pub(super) fn end(&self, row: usize, end: f64, completed: bool) -> Markup {
        let (x, y) = (self.x(end), Self::y(row));
        let beyond = self.cut > 0 && self.x.at(end) >= 1.0;
        html! {
            @if beyond {
                path class=(if completed { "frame" } else { "cross" }) d=(format!("M{} {}l5 4l-5 4", place(x - 1.0), place(y - 4.0))) {}
            } @else if !completed {
                path.cross d=(format!("M{} {}l6 6m0-6l-6 6", place(x - 3.0), place(y - 3.0))) {}
            }
        }
    }
}

/// When a request was over, after its intended start; of one in flight at the end of the run, how
/// long it is known to have taken.
pub(super) fn end_ms(request: &ExemplarRequest) -> f64 {
    let open = request.open_ms.map(|open| request.dispatch_lag_ms + open);
    request.response_time_ms.or(open).unwrap_or(request.dispatch_lag_ms)
}

pub(super) fn is_completed(request: &ExemplarRequest) -> bool {
    request.outcome == "completed"
}

/// How a request ended: the outcome, and its error class.
pub(super) fn outcome(request: &ExemplarRequest) -> String {
    let words = request.outcome.replace('_', " ");
    match &request.error {
        Some(error) => format!("{words}: {error}"),
        None if request.outcome == "rejected" => format!("{words}: {}", request.status),
        None => words,
    }
}

/// A row for each request: what it was, then its figures below `head`.
pub(super) fn table<const N: usize>(
    requests: &[&ExemplarRequest],
    head: [&str; N],
    figures: impl Fn(&ExemplarRequest) -> [String; N],
) -> Table {
    let about = ["request", "target", "stage", "second", "outcome"];
    let mut table = Table::new([&about[..], &head].concat());
    for r in requests {
        let about = [
            r.request_id.clone(),
            printable(&r.target).into_owned(),
            printable(&r.stage).into_owned(),
            second(r.intended_s),
            outcome(r),
        ];
        table.rows.push(about.into_iter().chain(figures(r)).collect());
    }
    table
}

/// A time, with the mark of figures that must not be used where Plimsoll itself may have added more
/// than a twentieth of it.
pub(super) fn marked(ms: f64, own_ms: Option<f64>) -> String {
    let mark = if own_ms.is_some_and(|own| own * 20.0 > ms) { "!" } else { "" };
    format!("{}{mark}", time(ms))
}

/// The text of a row: a time, when it was due, its id, its target where there are several, and how
/// it ended where it did not complete.
pub(super) fn label(row: usize, what: &str, request: &ExemplarRequest, targets: usize) -> Markup {
    let name = printable(&request.target);
    let short: String = name.chars().take(NAME).collect();
    html! {
        text.id x=(place(SIDE)) y=(place(Rows::y(row) - 7.0)) {
            tspan font-weight="700" { (what) } " " (request.request_id)
            tspan class="soft more" {
                " at " (second(request.intended_s)) " s"
                @if targets > 1 { " " (short) }
            }
            @if !is_completed(request) { tspan class="fbad more" { " " (printable(&outcome(request))) } }
        }
    }
}
