//! What the probes measured beside the share kept: times by load, throughput against latency,
//! tokens against interactivity. Only of probes that lasted to their end and are valid.

use maud::{Markup, html};
use plimsoll_knee::{CurvePoint, ProbeFigures};
use plimsoll_report::format::{DASH, digits, or_dash, time, time_or_dash};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use super::{View, name_of};
use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::mark::{Mark, shape};
use crate::plot::{Plot, legend_with, short, short_time};

/// A curve of fewer points shows nothing.
const FEWEST: usize = 3;

/// A figure of a probe.
type Figure = fn(&ProbeFigures) -> Option<f64>;

/// Median and p99 of a time, each with its mark.
const QUANTILES: [(&str, Mark); 2] = [("p50", Mark::Good), ("p99", Mark::Bad)];

/// The time that the objective bounds, by load.
pub(super) fn times(view: &View<'_>) -> Option<Chart> {
    let figures: [Figure; 2] = [|f| f.p50_ms, |f| f.p99_ms];
    let bound = view.objective.as_ref().and_then(plimsoll_knee::Objective::first_bound);
    let name = bound.map_or("time", |(name, _)| name);
    let bound_ms = bound.map(|(_, bound)| bound.as_millis_f64());
    let points = Points::from_view(view, &|point| Some(point.load), &figures)?;
    let y = points.y(bound_ms);
    let plot = Plot { x: view.loads(), y };
    let mut entries: Vec<_> = bound_ms
        .map(|bound| ("l-asked".to_owned(), format!("bound of {}", time(bound))))
        .into_iter()
        .collect();
    entries.extend(view.band_entries(None));
    Some(Chart {
        id: "times".to_owned(),
        title: format!("{name} by load"),
        text: format!(
            "Median and p99 of {name} in {} probes, from {} to {}. Where fewer than 10 values lie beyond a percentile, it is left out.",
            points.probes,
            time(points.lowest),
            time(points.highest)
        ),
        drawing: html! {
            (view.bands(&plot, None))
            (plot.axes(&short, &short_time, view.axis_title()))
            @if let Some(bound) = bound_ms { (plot.level("l-asked", bound)) }
            (points.draw(view, &plot))
        },
        height: None,
        legend: legend_with(&points.shapes(view), &entries),
        table: table(view, &["p50", "p99"], |f| {
            vec![time_or_dash(f.p50_ms), time_or_dash(f.p99_ms)]
        }),
    })
}

/// Good answers per second against how long they took.
pub(super) fn throughput(view: &View<'_>) -> Option<Chart> {
    let streams =
        view.knees.iter().flat_map(|knee| &knee.curve).any(|p| p.figures.ttft_p50_ms.is_some());
    let (name, figures): (&str, [Figure; 2]) = if streams {
        ("time to first token", [|f| f.ttft_p50_ms, |f| f.ttft_p99_ms])
    } else {
        ("response time", [|f| f.response_time_p50_ms, |f| f.response_time_p99_ms])
    };
    let points = Points::from_view(view, &|point| point.figures.throughput_per_s, &figures)?;
    let plot = Plot { x: Axis::from_zero(points.widest), y: points.y(None) };
    Some(Chart {
        id: "throughput-latency".to_owned(),
        title: format!("Throughput against {name}"),
        text: format!(
            "Good answers per second, at most {}/s, and the {name} of the same probe. Down and to the right is better: more answers, earlier.",
            digits(points.widest)
        ),
        drawing: html! {
            (plot.axes(&short, &short_time, "good answers per second"))
            (points.draw(view, &plot))
        },
        height: None,
        legend: legend_with(&points.shapes(view), &names(view)),
        table: table(view, &["good answers", "p50", "p99"], |f| {
            vec![rate(f.throughput_per_s), time_or_dash(figures[0](f)), time_or_dash(figures[1](f))]
        }),
    })
}

/// Tokens per second of all users together against those that one user sees.
pub(super) fn interactivity(view: &View<'_>) -> Option<Chart> {
    let figures: [Figure; 2] = [|f| f.tokens_per_s, |_| None];
    let points = Points::from_view(view, &|point| point.figures.tokens_per_s_per_user, &figures)?;
    let plot = Plot { x: Axis::from_zero(points.widest), y: Axis::from_zero(points.highest) };
    Some(Chart {
        id: "interactivity".to_owned(),
        title: "Tokens per second: of all users, and as one user sees them".to_owned(),
        text: format!(
            "All users together get at most {} tokens/s; one user sees at most {}/s, 1 / the median time per output token. Up and to the right is better.",
            digits(points.highest),
            digits(points.widest)
        ),
        drawing: html! {
            (plot.axes(&short, &short, "tokens/s that one user sees"))
            (points.draw(view, &plot))
        },
        height: None,
        legend: legend_with(&[], &names(view)),
        table: table(view, &["all users", "one user"], |f| {
            vec![rate(f.tokens_per_s), rate(f.tokens_per_s_per_user)]
        }),
    })
}

/// Points of a chart: the target, which of the figures, and where.
struct Points {
    at: Vec<(usize, usize, (f64, f64))>,
    probes: usize,
    lowest: f64,
    highest: f64,
    widest: f64,
}

impl Points {
    /// Those that have both values; `None` where there are too few.
    fn from_view(
        view: &View<'_>,
        x: &dyn Fn(&CurvePoint) -> Option<f64>,
        figures: &[Figure; 2],
    ) -> Option<Self> {
        let mut at = Vec::new();
        let mut probes = 0;
        for (nth, knee) in view.targets() {
            let placed = knee.curve.iter().filter_map(|point| Some((x(point)?, point)));
            for (x, point) in placed {
                let before = at.len();
                let found = figures.iter().enumerate();
                at.extend(found.filter_map(|(of, y)| Some((nth, of, (x, y(&point.figures)?)))));
                probes += usize::from(at.len() > before);
            }
        }
        let ys = at.iter().map(|(_, _, (_, y))| *y);
        let widest = at.iter().map(|(_, _, (x, _))| *x).fold(0.0, f64::max);
        let (lowest, highest) = (ys.clone().fold(f64::MAX, f64::min), ys.fold(0.0, f64::max));
        (probes >= FEWEST).then_some(Self { at, probes, lowest, highest, widest })
    }

    /// The axis of times.
    fn y(&self, bound: Option<f64>) -> Axis {
        let bound = bound.unwrap_or(self.highest);
        Axis::log(self.lowest.min(bound), self.highest.max(bound))
    }

    fn draw(&self, view: &View<'_>, plot: &Plot) -> Markup {
        html! {
            @for (nth, of, (x, y)) in &self.at {
                @let (_, mark) = QUANTILES[*of];
                (shape(mark, &area(view, *nth, *of), plot.x(*x), plot.y(*y)))
            }
        }
    }

    fn shapes(&self, view: &View<'_>) -> Vec<(Markup, String)> {
        let shapes = QUANTILES
            .iter()
            .enumerate()
            .filter(|(of, _)| self.at.iter().any(|(_, which, _)| which == of));
        shapes
            .map(|(of, (words, mark))| {
                let area = if view.is_several() { "pale".to_owned() } else { area(view, 0, of) };
                (shape(*mark, &area, 12.0, 5.0), (*words).to_owned())
            })
            .collect()
    }
}

/// Of one target a colour for each percentile, of several one for each target.
fn area(view: &View<'_>, nth: usize, of: usize) -> String {
    format!("f{}", if view.is_several() { nth } else { of })
}

/// The colours of several targets.
fn names(view: &View<'_>) -> Vec<(String, String)> {
    if view.is_several() {
        view.targets()
            .map(|(nth, knee)| (format!("f{nth}"), printable(name_of(knee)).into_owned()))
            .collect()
    } else {
        Vec::new()
    }
}

fn rate(value: Option<f64>) -> String {
    or_dash(value, |value| format!("{}/s", digits(value)))
}

fn table(view: &View<'_>, head: &[&str], figures: impl Fn(&ProbeFigures) -> Vec<String>) -> Table {
    let mut table = Table::new([&["target", "probe", "load"], head].concat());
    for knee in view.knees {
        for point in &knee.curve {
            let cells = figures(&point.figures);
            if cells.iter().all(|cell| cell == DASH) {
                continue;
            }
            let about = [
                name_of(knee).to_owned(),
                (point.probe + 1).to_string(),
                view.load.text(point.load),
            ];
            table.rows.push(about.into_iter().chain(cells).collect());
        }
    }
    table
}
