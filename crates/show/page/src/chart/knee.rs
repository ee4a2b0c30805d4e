//! Charts of capacity searches: the share of requests that missed the objective by load, times by
//! load, and tokens against interactivity.

use plimsoll_knee::{Found, KneeReport, Objective, Probe, State, TargetKnee};
use plimsoll_report::format::{count, digits, or_dash, time_or_dash};
use plimsoll_report::printable;
use serde_json::{Value, json};

use super::{Cell, Chart, Rows};

/// Minimum number of points of a curve.
const FEWEST: usize = 3;

/// Every chart of a search with any probes.
pub(crate) fn charts(report: &KneeReport) -> Vec<Chart> {
    let view = View { report, objective: report.objective.parse().ok() };
    if report.knees.iter().all(|knee| knee.probes.is_empty()) {
        return Vec::new();
    }
    let curves = [view.times(), view.throughput(), view.interactivity()];
    [view.missed()].into_iter().chain(curves.into_iter().flatten()).collect()
}

/// Name of a target.
pub(crate) fn name_of(knee: &TargetKnee) -> &str {
    if knee.name.is_empty() { &knee.target } else { &knee.name }
}

/// Data shared by the charts of a search.
struct View<'a> {
    report: &'a KneeReport,
    /// The objective, if it is valid.
    objective: Option<Objective>,
}

impl View<'_> {
    /// The share that missed the objective, with the details of each probe.
    fn missed(&self) -> Chart {
        let mut rows = Rows::named("kept");
        for knee in &self.report.knees {
            let numbered = knee.probes.iter().enumerate();
            rows.cells.extend(numbered.map(|(nth, probe)| self.probe(knee, nth, probe)));
        }
        let spec = include_str!("../../assets/charts/kept.json");
        let chart = Chart::named("kept", "", spec, &rows);
        let asked = self.objective.as_ref().map(|objective| percent_missed(objective.share()));
        self.with_knees(chart).with("objective", json!([{"missed": asked}]))
    }

    fn probe(&self, knee: &TargetKnee, nth: usize, probe: &Probe) -> Vec<Cell> {
        let figures = &probe.figures;
        let kept = probe.kept.filter(|kept| probe.state != State::Down && kept.value.is_finite());
        let ends = kept.map(|kept| [kept.value, kept.high, kept.low].map(percent_missed));
        let shows = probe.word();
        let of = if self.report.knees.len() > 1 { name_of(knee) } else { shows };
        let note = if probe.has_ended_early { "ended early: plainly missed" } else { "" };
        let mut row = vec![
            Cell::new(nth + 1, (nth + 1).to_string()),
            Cell::text(name_of(knee)),
            Cell::new(probe.load, self.report.load.text(probe.load)),
            Cell::new((), format!("{:.1}s", probe.seconds)),
            Cell::text(probe.phase.name()),
            Cell::new((), or_dash(kept, |kept| kept.text())),
            Cell::text(shows),
            Cell::new(probe.requests, count(probe.requests)),
            Cell::new(figures.p50_ms, time_or_dash(figures.p50_ms)),
            Cell::new(figures.p99_ms, time_or_dash(figures.p99_ms)),
            Cell::rate(figures.in_flight),
            Cell::new((), or_dash(figures.goodput_per_s, |rate| format!("{}/s", digits(rate)))),
            Cell::new((), note.to_owned()),
            Cell::text(of),
        ];
        row.extend((0..3).map(|end| Cell::value(ends.map(|ends| ends[end]))));
        row
    }

    /// The bounded time by load.
    fn times(&self) -> Option<Chart> {
        let bound = self.objective.as_ref().and_then(Objective::first_bound);
        let name = bound.map_or("time", |(name, _)| name);
        let rows = self.curve("load-times", |load, f| [Some(load), f.p50_ms, f.p99_ms])?;
        let spec = include_str!("../../assets/charts/load-times.json");
        let chart = Chart::named("load-times", name, spec, &rows);
        let bound = bound.map(|(_, bound)| bound.as_millis_f64());
        Some(self.with_knees(chart).with("objective", json!([{"bound": bound}])))
    }

    /// Successful responses per second against their response time.
    fn throughput(&self) -> Option<Chart> {
        let mut curve = self.report.knees.iter().flat_map(TargetKnee::curve);
        let streams = curve.any(|(_, probe)| probe.figures.ttft_p50_ms.is_some());
        let name = if streams { "time to first token" } else { "response time" };
        let rows = self.curve("throughput", |_, f| {
            let times = if streams {
                [f.ttft_p50_ms, f.ttft_p99_ms]
            } else {
                [f.response_time_p50_ms, f.response_time_p99_ms]
            };
            [f.throughput_per_s, times[0], times[1]]
        })?;
        let spec = include_str!("../../assets/charts/throughput.json");
        Some(Chart::named("throughput", name, spec, &rows))
    }

    /// Tokens per second of all users together against a single user's.
    fn interactivity(&self) -> Option<Chart> {
        let rows = self.curve("interactivity", |load, f| {
            [Some(load), f.tokens_per_s_per_user, f.tokens_per_s]
        })?;
        let spec = include_str!("../../assets/charts/interactivity.json");
        Some(Chart::named("interactivity", "", spec, &rows))
    }

    /// The probes that have the first two figures; the second and third may be times.
    fn curve(
        &self,
        name: &str,
        figures: impl Fn(f64, &plimsoll_knee::ProbeFigures) -> [Option<f64>; 3],
    ) -> Option<Rows> {
        let mut rows = Rows::named(name);
        let points = self
            .report
            .knees
            .iter()
            .flat_map(|knee| knee.curve().into_iter().map(move |point| (name_of(knee), point)));
        for (name, (nth, probe)) in points {
            let found = figures(probe.load, &probe.figures);
            let [Some(_), Some(_), _] = found else { continue };
            let cells = rows.head[2..].iter().zip(found).map(|(title, value)| match *title {
                "p50" | "p99" => Cell::time(value),
                _ => Cell::rate(value),
            });
            let about = [Cell::text(name), Cell::new(nth + 1, (nth + 1).to_string())];
            let row = about.into_iter().chain(cells).chain([Cell::text(name)]).collect();
            rows.cells.push(row);
        }
        (rows.cells.len() >= FEWEST).then_some(rows)
    }

    /// Adds the capacities and the loads with a special meaning.
    fn with_knees(&self, chart: Chart) -> Chart {
        let knees = &self.report.knees;
        let loads = knees.iter().flat_map(|knee| &knee.probes).map(|probe| probe.load);
        let (lowest, highest) =
            loads.fold((f64::MAX, 0.0_f64), |(low, high), load| (low.min(load), high.max(load)));
        let bands = knees.iter().filter_map(|knee| {
            let (low, high) = reach(&knee.knee, lowest, highest)?;
            let of = if knees.len() > 1 { printable(name_of(knee)) } else { "capacity".into() };
            let meaning = knee.capacity(self.report.load);
            Some(json!({"of": of, "meaning": printable(&meaning), "low": low, "high": high}))
        });
        let marks = knees.iter().filter_map(|knee| knee.at_least);
        let marks = marks.map(|required| json!({"meaning": "required", "load": required.load}));
        chart.with("marks", marks.collect::<Value>()).with("knees", bands.collect::<Value>())
    }
}

fn percent_missed(kept: f64) -> f64 {
    (1.0 - kept) * 100.0
}

/// The interval of loads that includes the capacity, extended to the outermost probe if an end is
/// open.
fn reach(found: &Found, lowest: f64, highest: f64) -> Option<(f64, f64)> {
    let is_known = found.low.is_some() || found.high.is_some();
    is_known.then(|| (found.low.unwrap_or(lowest), found.high.unwrap_or(highest)))
}
