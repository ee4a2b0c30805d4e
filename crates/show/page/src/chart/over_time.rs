//! Charts over time: percentiles of times, and rates with errors.

use plimsoll_metrics::{
    Metric, RunSummary, RunTimeline, ServerFigure, TimelineGroup, TimelineInterval,
};
use plimsoll_report::figure_text;
use plimsoll_report::format::digits;
use serde_json::{Value, json};

use super::{Cell, Chart, Rows};

/// Formats seconds from the start: `90`, or `1:30` from ten minutes on.
pub(super) fn second(at: f64) -> String {
    if at >= 600.0 {
        format!("{:.0}:{:02.0}", (at / 60.0).floor(), at % 60.0)
    } else if at.fract().abs() < 1e-9 {
        format!("{at:.0}")
    } else {
        digits(at)
    }
}

fn start_of(interval: &TimelineInterval) -> Cell {
    Cell::new(interval.start_s, second(interval.start_s))
}

/// The headline time, and the time to first token of streams.
pub(super) fn times(summary: &RunSummary, timeline: &RunTimeline) -> Vec<Chart> {
    let metrics = [("times", summary.metadata.headline_time()), ("ttft", Metric::Ttft)];
    metrics.into_iter().filter_map(|(id, metric)| times_of(id, metric, timeline)).collect()
}

fn times_of(id: &'static str, metric: Metric, timeline: &RunTimeline) -> Option<Chart> {
    let mut rows = Rows::named("times");
    for interval in &timeline.intervals {
        for group in &interval.groups {
            let Some(times) = group.times.get(metric.key()) else { continue };
            let figures = [times.p50, times.p90, times.p99, times.max];
            let names = [start_of(interval), Cell::text(&group.stage), Cell::text(&group.target)];
            let row = names.into_iter().chain([Cell::count(times.count)]);
            rows.cells.push(row.chain(figures.map(Cell::time)).collect());
        }
    }
    let spec = include_str!("../../assets/charts/times.json");
    let chart = Chart { id, ..Chart::named("times", metric.title(), spec, &rows) };
    let is_drawn = rows.cells.iter().any(|row| row[4].value.is_number());
    is_drawn.then(|| chart.with("warmup", warmup(timeline)))
}

/// The warm-up stages, drawn behind a chart.
fn warmup(timeline: &RunTimeline) -> Value {
    let stages = timeline.stages.iter().filter(|stage| stage.warmup);
    stages.map(|s| json!({"from": s.start_s, "to": s.start_s + s.duration_s})).collect()
}

/// Requests planned, sent, completed and failed per second.
pub(super) fn rates(timeline: &RunTimeline) -> Chart {
    let counts: [fn(&TimelineGroup) -> u64; 4] = [
        |group| group.due,
        |group| group.sent,
        |group| group.counters.completed,
        |group| group.counters.failures(),
    ];
    let mut rows = Rows::named("rates");
    // The last interval may be too short to divide by its length.
    let whole = timeline.intervals.iter().filter(|i| i.length_s >= timeline.interval_s * 0.5);
    for interval in whole {
        let rates = counts.map(|of| {
            let requests: u64 = interval.groups.iter().map(of).sum();
            Cell::rate(Some(requests as f64 / interval.length_s))
        });
        rows.cells.push([start_of(interval)].into_iter().chain(rates).collect());
    }
    let spec = include_str!("../../assets/charts/rates.json");
    Chart::named("rates", "", spec, &rows).with("warmup", warmup(timeline))
}

/// The figures of servers by their own metrics: requests, caches, tokens.
pub(super) fn servers(timeline: &RunTimeline) -> Vec<Chart> {
    let ids = ["server-queue", "server-cache", "server-tokens"];
    ids.into_iter().filter_map(|id| of_servers(id, timeline)).collect()
}

fn of_servers(id: &str, timeline: &RunTimeline) -> Option<Chart> {
    let mut rows = Rows::named(id);
    let of_each = timeline.intervals.iter().flat_map(|interval| {
        interval.servers.iter().map(move |(server, figures)| (interval, server, figures))
    });
    for (interval, server, figures) in of_each {
        let own = ServerFigure::all().filter(|figure| figure.chart == id);
        let known = own.filter_map(|figure| Some((figure, *figures.get(figure.key)?)));
        rows.cells.extend(known.map(|(figure, value)| {
            let drawn = value * if figure.format == "share" { 100.0 } else { 1.0 };
            let value = Cell::new(drawn, figure_text(figure, value));
            vec![start_of(interval), Cell::text(server), Cell::text(figure.title), value]
        }));
    }
    let spec = include_str!("../../assets/charts/server.json");
    let chart = Chart::named(id, "", spec, &rows).with("warmup", warmup(timeline));
    (!rows.cells.is_empty()).then_some(chart)
}
