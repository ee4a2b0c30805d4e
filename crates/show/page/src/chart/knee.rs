//! The charts of a search of knees: the share kept by load, times, curves, and the search itself.

mod curves;
mod kept;
mod order;

use maud::{Markup, html};
use plimsoll_knee::{Found, Kind, KneeReport, Load, Objective, Phase, Probe, State, TargetKnee};
use plimsoll_report::format::{digits, or_dash, time_or_dash};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::mark::{Mark, shape};
use crate::plot::{Plot, place};

/// Every chart of a search that made a probe.
pub(super) fn charts(report: &KneeReport) -> Vec<Chart> {
    if report.knees.iter().all(|knee| knee.probes.is_empty()) {
        return Vec::new();
    }
    let view = View::from_report(report);
    let mut charts = vec![kept::all(&view)];
    charts.extend(kept::near(&view));
    charts.extend(curves::times(&view));
    charts.extend(curves::throughput(&view));
    charts.extend(curves::interactivity(&view));
    charts.push(order::chart(&view));
    charts
}

/// What a target is called.
pub(crate) fn name_of(knee: &TargetKnee) -> &str {
    if knee.name.is_empty() { &knee.target } else { &knee.name }
}

/// A search, as all of its charts see it.
struct View<'a> {
    load: Load,
    /// What was asked for, where it can be read.
    objective: Option<Objective>,
    knees: &'a [TargetKnee],
}

impl<'a> View<'a> {
    fn from_report(report: &'a KneeReport) -> Self {
        let objective = report.objective.parse().ok();
        Self { load: report.load, objective, knees: &report.knees }
    }

    fn is_several(&self) -> bool {
        self.knees.len() > 1
    }

    fn probes(&self) -> impl Iterator<Item = &'a Probe> + Clone {
        self.knees.iter().flat_map(|knee| &knee.probes)
    }

    /// The targets with the number of their colour.
    fn targets(&self) -> impl Iterator<Item = (usize, &'a TargetKnee)> + Clone {
        self.knees.iter().enumerate().map(|(nth, knee)| (nth % 6, knee))
    }

    /// All targets, or one of them.
    fn those(&self, only: Option<usize>) -> impl Iterator<Item = (usize, &'a TargetKnee)> + Clone {
        self.targets().filter(move |(nth, _)| only.is_none_or(|only| only == *nth))
    }

    /// The axis of all loads.
    fn loads(&self) -> Axis {
        let loads = self.probes().map(|probe| probe.load);
        let (low, high) =
            loads.fold((f64::MAX, 0.0_f64), |(low, high), load| (low.min(load), high.max(load)));
        Axis::log(low / SPARE, high * SPARE)
    }

    const fn axis_title(&self) -> &'static str {
        match self.load {
            Load::RequestsPerSecond => "requests per second",
            Load::VirtualUsers => "virtual users",
        }
    }

    /// Of one target colours are those of what a probe shows, of several those of the target.
    fn colours(&self, nth: usize, mark: Mark) -> (String, String) {
        if !self.is_several() {
            let (line, area) = mark.classes();
            return (line.to_owned(), area.to_owned());
        }
        let area = if mark == Mark::Open { format!("ring l{nth}") } else { format!("f{nth}") };
        (format!("l{nth}"), area)
    }

    /// A probe's mark; the confirmation has a ring around it.
    fn mark(&self, nth: usize, probe: &Probe, x: f64, y: f64) -> Markup {
        let mark = mark_of(probe);
        let (_, area) = self.colours(nth, mark);
        html! {
            @if probe.phase == Phase::Confirm { (ring(x, y)) }
            (shape(mark, &area, x, y))
        }
    }

    /// Where each knee is, or that of one target, behind a chart over loads.
    fn bands(&self, plot: &Plot, only: Option<usize>) -> Markup {
        html! {
            @for (nth, knee) in self.those(only) {
                @if let Some((from, to)) = reach(&knee.knee, &plot.x) {
                    (plot.band(&band_class(nth, &knee.knee), from, to))
                }
                @if let Some(load) = knee.knee.load.filter(|_| knee.knee.kind == Kind::Interval) {
                    (plot.rule(&format!("l{nth} thin"), load))
                }
                @if let Some(confirmed) = knee.knee.confirmed {
                    @if !self.is_several() { (plot.rule("l-held", confirmed.load)) }
                }
                @if let Some(wanted) = knee.at_least { (plot.rule("l-wanted", wanted.load)) }
            }
        }
    }

    /// What bands and rules mean.
    fn band_entries(&self, only: Option<usize>) -> Vec<(String, String)> {
        let mut entries = Vec::new();
        for (nth, knee) in self.those(only) {
            let found = &knee.knee;
            let words = if self.is_several() {
                format!("{}: {}", printable(name_of(knee)), knee.headline(self.load))
            } else {
                meaning(found.kind).to_owned()
            };
            if found.kind != Kind::Unknown {
                entries.push((band_class(nth, found), words));
            }
        }
        if let [one] = self.knees {
            entries.extend(one.knee.confirmed.map(|confirmed| {
                let at = self.load.text(confirmed.load);
                ("l-held".to_owned(), format!("confirmed for {:.0}s at {at}", confirmed.seconds))
            }));
        }
        let wanted = self.knees.iter().find_map(|knee| knee.at_least);
        entries.extend(wanted.map(|wanted| {
            ("l-wanted".to_owned(), format!("asked to carry {}", self.load.text(wanted.load)))
        }));
        entries
    }

    /// What the shapes of probes mean, as far as there are such.
    fn shapes(&self) -> Vec<(Markup, String)> {
        const X: f64 = 12.0;
        const Y: f64 = 5.0;
        let states = [
            (State::Kept, "kept"),
            (State::Missed, "missed"),
            (State::Unclear, "unclear"),
            (State::Invalid, "Plimsoll could not keep up: shows nothing"),
        ];
        let mut shapes: Vec<_> = states
            .into_iter()
            .filter(|(state, _)| self.probes().any(|probe| probe.state == *state))
            .map(|(state, words)| {
                let mark = mark_of_state(state);
                let area =
                    if self.is_several() && mark != Mark::Open { "pale" } else { mark.classes().1 };
                (shape(mark, area, X, Y), words.to_owned())
            })
            .collect();
        if self.probes().any(|probe| probe.phase == Phase::Confirm) {
            shapes.push((ring(X, Y), "the long probe below the knee".to_owned()));
        }
        shapes
    }

    /// The probes in the order of time, or those of some of them.
    fn table(&self, wanted: impl Fn(&Probe) -> bool) -> Table {
        let head = [
            "probe",
            "target",
            "load",
            "for",
            "why",
            "kept, 95 %",
            "shows",
            "requests",
            "p50",
            "p99",
            "in flight",
            "goodput",
            "note",
        ];
        let mut table = Table::new(head);
        for knee in self.knees {
            let numbered = knee.probes.iter().enumerate().filter(|(_, probe)| wanted(probe));
            table.rows.extend(numbered.map(|(nth, probe)| self.row(knee, nth, probe)));
        }
        table
    }

    fn row(&self, knee: &TargetKnee, nth: usize, probe: &Probe) -> Vec<String> {
        let figures = &probe.figures;
        let valid = probe.state != State::Invalid;
        let note = [&probe.invalid, &probe.ended].into_iter().flatten().cloned();
        vec![
            (nth + 1).to_string(),
            name_of(knee).to_owned(),
            self.load.text(probe.load),
            format!("{:.1}s", probe.seconds),
            purpose(probe.phase).to_owned(),
            or_dash(probe.kept.filter(|_| valid), |kept| kept.text()),
            word(probe.state).to_owned(),
            plimsoll_report::format::count(probe.requests),
            time_or_dash(figures.p50_ms),
            time_or_dash(figures.p99_ms),
            or_dash(figures.in_flight, digits),
            or_dash(figures.goodput_per_s, |rate| format!("{}/s", digits(rate))),
            note.collect::<Vec<_>>().join("; "),
        ]
    }
}

/// Room beside the lowest and the highest load.
const SPARE: f64 = 1.12;

/// How the band of a target is drawn; one that was not confirmed has an outline alone.
fn band_class(nth: usize, found: &Found) -> String {
    let unsure = if found.kind == Kind::Unstable { " unsure" } else { "" };
    format!("f{nth} faint{unsure}")
}

/// From where to where the knee may lie, to the end of the axis where it is open.
fn reach(found: &Found, x: &Axis) -> Option<(f64, f64)> {
    match found.kind {
        Kind::Interval | Kind::Bracket | Kind::Unstable => found.low.zip(found.high),
        Kind::AtLeast => Some((found.low?, x.high())),
        Kind::NotEven => Some((x.low(), found.high?)),
        Kind::Unknown => None,
    }
}

const fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Interval => "the knee, with its 95 % interval",
        Kind::Bracket => {
            "the knee is between a load that keeps the objective and one that misses it"
        }
        Kind::AtLeast => "the knee is here or beyond: nothing higher could be judged",
        Kind::NotEven => "the knee is here or below: not even the lowest load keeps the objective",
        Kind::Unstable => "found here, and not confirmed",
        Kind::Unknown => "",
    }
}

const fn mark_of_state(state: State) -> Mark {
    match state {
        State::Kept => Mark::Good,
        State::Missed => Mark::Bad,
        State::Unclear => Mark::Open,
        State::Invalid => Mark::Void,
    }
}

const fn mark_of(probe: &Probe) -> Mark {
    mark_of_state(probe.state)
}

fn ring(x: f64, y: f64) -> Markup {
    html! { circle.frame cx=(place(x)) cy=(place(y)) r="8" {} }
}

const fn word(state: State) -> &'static str {
    match state {
        State::Kept => "kept",
        State::Missed => "missed",
        State::Unclear => "unclear",
        State::Invalid => "nothing",
    }
}

const fn purpose(phase: Phase) -> &'static str {
    match phase {
        Phase::Floor => "the lowest load",
        Phase::Bracket => "a step up",
        Phase::Narrow => "bisecting",
        Phase::Cliff => "an end again",
        Phase::Estimate => "beside the best guess",
        Phase::Confirm => "confirming",
    }
}
