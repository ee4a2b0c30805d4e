//! Latency against throughput, a point for each stage, of runs with at least three of them.

use maud::html;
use plimsoll_metrics::{Group, Metric, QUANTILES, RunSummary};
use plimsoll_report::format::{self, rate_figure};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend, short, short_time};

const FEWEST: usize = 3;
const LINES: [(&str, &str); 2] = [("l0", "p50"), ("l1", "p99")];

/// A point for each measured stage, with a line for each percentile.
pub(super) fn chart(summary: &RunSummary) -> Option<Chart> {
    let metric = summary.metadata.headline_time();
    let stages: Vec<_> = summary.results.by_stage.iter().filter(|stage| !stage.warmup).collect();
    if stages.len() < FEWEST {
        return None;
    }
    let lines = LINES.map(|(_, key)| points(&stages, metric, key));
    if lines[0].len() < FEWEST {
        return None;
    }
    let widest = lines.iter().flatten().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let low = lines.iter().flatten().map(|(_, ms)| *ms).fold(f64::MAX, f64::min);
    let high = lines.iter().flatten().map(|(_, ms)| *ms).fold(0.0, f64::max);
    let plot = Plot { x: Axis::from_zero(widest), y: Axis::log(low, high) };
    let title = metric.title();
    Some(Chart {
        id: "load-curve".to_owned(),
        title: format!("{title} by throughput"),
        text: format!(
            "A point for each of {} stages; where a line turns upwards the target is full.",
            stages.len()
        ),
        drawing: html! {
            (plot.axes(&short, &short_time, "completed requests per second"))
            @for ((class, _), line) in LINES.iter().zip(&lines) {
                @let drawn: Vec<_> = line.iter().map(|point| Some(*point)).collect();
                (plot.line(class, &drawn))
                @for (rate, ms) in line {
                    (crate::mark::shape(crate::mark::Mark::Disc, &class.replace('l', "f"), plot.x(*rate), plot.y(*ms)))
                }
            }
        },
        height: None,
        legend: legend(&LINES.map(|(class, words)| (class.to_owned(), words.to_owned()))),
        table: table(&stages, metric),
    })
}

/// Throughput and time of the stages in which both are known, by throughput.
fn points(stages: &[&Group], metric: Metric, key: &str) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = stages
        .iter()
        .filter_map(|stage| {
            let rate = stage.named_rate("throughput")?.value;
            let quantile = QUANTILES.iter().find(|quantile| quantile.key == key)?;
            Some((rate, stage.distribution(metric)?.figure(quantile)?.value))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn table(stages: &[&Group], metric: Metric) -> Table {
    let mut table = Table::new(["stage", "completed/s", "p50", "p95", "p99"]);
    for stage in stages {
        let shown = QUANTILES.iter().filter(|q| ["p50", "p95", "p99"].contains(&q.key));
        let figures = shown
            .map(|q| format::figure(stage.distribution(metric).and_then(|times| times.figure(q))));
        let name = printable(stage.stage.as_deref().unwrap_or_default()).into_owned();
        let rate = rate_figure(stage.named_rate("throughput"));
        table.rows.push([name, rate].into_iter().chain(figures).collect());
    }
    table
}
