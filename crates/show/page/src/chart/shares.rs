//! Which share of the requests was answered within which time: a chart for each scenario, all with
//! the same axis of time. Lines end where samples end.

use std::collections::BTreeMap;

use maud::html;
use plimsoll_metrics::{DistributionSummary, Metric, QUANTILES, RunSummary};
use plimsoll_report::format::{self, count, share, time};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend, series, short_time};

/// The most charts: the scenarios with the most requests.
const CHARTS: usize = 12;
/// Values beyond a percentile, so that it is one.
const BEYOND: f64 = 10.0;

/// The times of a scenario by target.
struct Scenario {
    name: String,
    lines: Vec<(String, DistributionSummary)>,
}

impl Scenario {
    fn requests(&self) -> u64 {
        self.lines.iter().map(|(_, times)| times.count).sum()
    }
}

/// A point: share of the requests, and the time in milliseconds within which they were answered.
type Point = Option<(f64, f64)>;

/// A chart for each scenario, those with the most requests.
pub(super) fn charts(summary: &RunSummary) -> Vec<Chart> {
    let metric = summary.metadata.headline_time();
    let mut scenarios = scenarios(summary, metric);
    let all = scenarios.len();
    if all > CHARTS {
        scenarios.sort_by_key(|scenario| std::cmp::Reverse(scenario.requests()));
        scenarios.truncate(CHARTS);
    }
    let points: Vec<Vec<Vec<Point>>> = scenarios
        .iter()
        .map(|scenario| scenario.lines.iter().map(|(_, times)| line(times)).collect())
        .collect();
    let values = points.iter().flatten().flatten().flatten().map(|(_, ms)| *ms);
    let (low, high) = (values.clone().fold(f64::MAX, f64::min), values.fold(0.0, f64::max));
    if high <= 0.0 {
        return Vec::new();
    }
    let plot = Plot { x: Axis::log(low, high), y: Axis::linear(0.0, 1.0) };
    let drawn = scenarios.iter().zip(&points).enumerate();
    drawn
        .filter(|(_, (_, points))| points.iter().flatten().any(Option::is_some))
        .map(|(nth, (scenario, points))| chart(metric, &plot, nth, all, scenario, points))
        .collect()
}

fn chart(
    metric: Metric,
    plot: &Plot,
    nth: usize,
    all: usize,
    scenario: &Scenario,
    points: &[Vec<Point>],
) -> Chart {
    let entries: Vec<_> =
        scenario.lines.iter().enumerate().map(|(i, line)| (series(i), line.0.clone())).collect();
    let of = if all > 1 { format!(": {}", printable(&scenario.name)) } else { String::new() };
    let note = if nth == 0 && all > CHARTS {
        format!(" The {CHARTS} scenarios of {all} with the most requests have a chart.")
    } else {
        String::new()
    };
    Chart {
        id: format!("shares-{nth}"),
        title: format!("{} by share of requests{of}", metric.title()),
        text: sentence(scenario) + &note,
        drawing: html! {
            (plot.axes(&short_time, &|share| format!("{:.0}%", share * 100.0), "answered within this time"))
            @for (index, line) in points.iter().enumerate() {
                @let turned: Vec<Point> = line.iter().map(|p| p.map(|(share, ms)| (ms, share))).collect();
                (plot.line(&series(index), &turned))
            }
        },
        height: None,
        legend: legend(&entries),
        table: table(scenario, points),
    }
}

/// Targets by scenario, without warm-up.
fn scenarios(summary: &RunSummary, metric: Metric) -> Vec<Scenario> {
    let (names, targets) = (&summary.metadata.scenarios, &summary.metadata.targets);
    let results = &summary.results;
    if names.len() <= 1 {
        let lines = results
            .by_target
            .iter()
            .filter_map(|group| {
                let name = printable(group.target.as_ref()?).into_owned();
                Some((name, group.distribution(metric)?.clone()))
            })
            .collect();
        return vec![Scenario { name: names.first().cloned().unwrap_or_default(), lines }];
    }
    if targets.len() <= 1 {
        let target = targets.first().map(|target| printable(&target.name).into_owned());
        return results
            .by_scenario
            .iter()
            .filter_map(|group| {
                let times = group.distribution(metric)?.clone();
                let lines = vec![(target.clone().unwrap_or_default(), times)];
                Some(Scenario { name: group.scenario.clone()?, lines })
            })
            .collect();
    }
    names
        .iter()
        .map(|name| Scenario { name: name.clone(), lines: merged(summary, metric, name) })
        .collect()
}

/// The times of each target in a scenario, over all stages but warm-up.
fn merged(summary: &RunSummary, metric: Metric, name: &str) -> Vec<(String, DistributionSummary)> {
    let cells = summary.results.cells.iter().filter(|cell| !cell.warmup);
    let mut found: BTreeMap<usize, Option<DistributionSummary>> = BTreeMap::new();
    for cell in cells.filter(|cell| cell.scenario.as_deref() == Some(name)) {
        let Some(times) = cell.distribution(metric) else { continue };
        let place = summary
            .metadata
            .targets
            .iter()
            .position(|target| cell.target.as_deref() == Some(target.name.as_str()));
        let Some(place) = place else { continue };
        let known = found.remove(&place);
        // Of a histogram that cannot be read there is no line.
        let sum = match known {
            None => Some(times.clone()),
            Some(known) => known.and_then(|known| known.merged(times, metric).ok()),
        };
        found.insert(place, sum);
    }
    found
        .into_iter()
        .filter_map(|(place, times)| {
            Some((printable(&summary.metadata.targets[place].name).into_owned(), times?))
        })
        .collect()
}

/// Every second percent, and both ends as far as there are requests beyond them.
fn line(times: &DistributionSummary) -> Vec<Point> {
    let tail = [0.99, 0.995, 0.998, 0.999, 0.999_5, 0.999_9];
    let shares: Vec<f64> = std::iter::once(0.01)
        .chain((1..50).map(|n| f64::from(n) * 0.02))
        .chain(tail)
        .filter(|share| share * times.count as f64 >= BEYOND)
        .collect();
    // A histogram that cannot be read has no line.
    let figures = times.figures_at(&shares).unwrap_or_default();
    shares.into_iter().zip(figures).map(|(share, figure)| Some((share, figure?.value))).collect()
}

fn sentence(scenario: &Scenario) -> String {
    scenario
        .lines
        .iter()
        .map(|(name, times)| {
            let shown = QUANTILES
                .iter()
                .filter(|q| ["p50", "p90", "p99"].contains(&q.key))
                .map(|q| format!("{} {}", q.label, format::figure(times.figure(q))))
                .collect::<Vec<_>>();
            let shown = shown.join(", ");
            format!("{name}: {shown}, of {} requests", count(times.count))
        })
        .collect::<Vec<_>>()
        .join("; ")
        + "."
}

fn table(scenario: &Scenario, points: &[Vec<Point>]) -> Table {
    let mut table = Table::new(["target", "share of requests", "answered within"]);
    for ((name, _), line) in scenario.lines.iter().zip(points) {
        let shown = line.iter().flatten();
        table.rows.extend(shown.map(|(part, ms)| vec![name.clone(), share(*part), time(*ms)]));
    }
    table
}
