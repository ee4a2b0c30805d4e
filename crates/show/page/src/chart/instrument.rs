//! How late the generator was, and the CPU of the watched processes.

use std::collections::BTreeSet;

use maud::html;
use plimsoll_metrics::RunTimeline;
use plimsoll_report::format::{digits, or_dash, time};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::over_time;
use crate::plot::{Plot, legend, short, short_time};

/// The lag where arrivals were planned, and the CPU where processes were watched; `cpus` are those
/// of the host.
pub(super) fn charts(timeline: &RunTimeline, cpus: Option<u32>) -> Vec<Chart> {
    [lag(timeline), cpu(timeline, cpus)].into_iter().flatten().collect()
}

fn lag(timeline: &RunTimeline) -> Option<Chart> {
    let highest = timeline
        .intervals
        .iter()
        .filter_map(|interval| interval.pacing_lag_ms)
        .map(|lag| lag.max)
        .reduce(f64::max)?;
    let y = Axis::log(0.001, highest.max(1.0));
    let plot = Plot { x: over_time::axis(timeline), y };
    let lags = timeline
        .intervals
        .iter()
        .map(|interval| interval.pacing_lag_ms.map(|lag| (over_time::middle(interval), lag)));
    let p99: Vec<_> = lags.clone().map(|lag| lag.map(|(x, lag)| (x, lag.p99))).collect();
    let max: Vec<_> = lags.map(|lag| lag.map(|(x, lag)| (x, lag.max))).collect();
    let mut table = Table::new(["second", "p50", "p99", "max", "stood still"]);
    for interval in &timeline.intervals {
        let lag = interval.pacing_lag_ms;
        table.rows.push(vec![
            over_time::second(interval.start_s),
            or_dash(lag.map(|lag| lag.p50), time),
            or_dash(lag.map(|lag| lag.p99), time),
            or_dash(lag.map(|lag| lag.max), time),
            time(interval.disturbed_s * 1e3),
        ]);
    }
    let mut entries =
        vec![("l0".to_owned(), "p99".to_owned()), ("l1".to_owned(), "largest".to_owned())];
    entries.extend(over_time::legend(timeline, true));
    Some(Chart {
        id: "lag".to_owned(),
        title: "How late Plimsoll dispatched".to_owned(),
        text: format!(
            "At most {}. It is Plimsoll's own lateness: the wait for a free slot or connection is not in it.",
            time(highest)
        ),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (over_time::stalls(&plot, timeline))
            (plot.axes(&over_time::second, &short_time, "seconds"))
            (plot.line("l0", &p99))
            (plot.line("l1", &max))
        },
        height: None,
        legend: legend(&entries),
        table,
    })
}

/// The limit is drawn where it is at most so many times what was used.
const LIMIT_NEAR: f64 = 4.0;

fn cpu(timeline: &RunTimeline, cpus: Option<u32>) -> Option<Chart> {
    let names: BTreeSet<_> =
        timeline.intervals.iter().flat_map(|interval| interval.cores.keys()).collect();
    let highest = timeline
        .intervals
        .iter()
        .flat_map(|interval| interval.cores.values())
        .copied()
        .reduce(f64::max)?;
    let limit = cpus.map(f64::from).filter(|cpus| *cpus <= highest * LIMIT_NEAR);
    let top = highest.max(limit.unwrap_or(0.1));
    let plot = Plot { x: over_time::axis(timeline), y: Axis::from_zero(top) };
    let mut table = Table { head: vec!["second".to_owned()], rows: Vec::new() };
    table.head.extend(names.iter().map(ToString::to_string));
    for interval in &timeline.intervals {
        let cells = names.iter().map(|name| or_dash(interval.cores.get(*name).copied(), digits));
        table.rows.push([over_time::second(interval.start_s)].into_iter().chain(cells).collect());
    }
    let lines: Vec<(String, Vec<_>)> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let points = timeline.intervals.iter();
            let points = points.map(|i| Some((over_time::middle(i), *i.cores.get(*name)?)));
            (format!("l{}", index % 6), points.collect())
        })
        .collect();
    let mut entries: Vec<_> = lines
        .iter()
        .zip(&names)
        .map(|((class, _), name)| (class.clone(), printable(name).to_string()))
        .collect();
    entries.extend(
        limit.map(|cpus| ("l-asked".to_owned(), format!("all {cpus:.0} CPUs of this host"))),
    );
    let host = cpus.map_or_else(String::new, |cpus| format!("; this host has {cpus}"));
    Some(Chart {
        id: "cpu".to_owned(),
        title: "CPU of the watched processes".to_owned(),
        text: format!("In cores, with all descendants; at most {}{host}.", digits(highest)),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (plot.axes(&over_time::second, &short, "seconds"))
            @if let Some(cpus) = limit { (plot.level("l-asked", cpus)) }
            @for (class, points) in &lines { (plot.line(class, points)) }
        },
        height: None,
        legend: legend(&entries),
        table,
    })
}
