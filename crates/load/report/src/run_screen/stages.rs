//! One line for each stage.

use plimsoll_metrics::{BoundedFigure, Group, Metric, QUANTILES, RunSummary};

use super::missing::{P99, measured_stages};
use crate::format::{self, DASH};
use crate::screen::{Rows, Screen};
use crate::table::Table;
use crate::text::tokens;

/// The most stages: first, worst, last.
const MOST: usize = 10;

const HEAD: [&str; 8] = ["", "sent/s", "answered", "p50", "p99", "TTFT", "ITL", "tokens/s"];

pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    let metric = summary.metadata.headline_time();
    let stages: Vec<_> = measured_stages(summary).collect();
    let mut table = Table::new(HEAD);
    for stage in &stages {
        table.row(row(stage, metric));
    }
    let first = by_importance(&stages, metric);
    let rows = Rows { table, unit: "stages", first, most: MOST, ..Rows::default() };
    screen.rows(&heading(summary, metric), rows);
}

/// What the columns of times are.
fn heading(summary: &RunSummary, metric: Metric) -> String {
    let whole = match metric {
        Metric::ServiceTime => "service time",
        _ => "response time",
    };
    let total = &summary.results.total;
    let has = |metric: Metric| total.distribution(metric).is_some();
    let parts = match (has(Metric::Ttft), has(Metric::Itl)) {
        (true, true) => "; TTFT and ITL are medians",
        (true, false) => "; TTFT is a median",
        _ => "",
    };
    format!("{whole} p50 and p99{parts}")
}

fn row(stage: &Group, metric: Metric) -> [String; HEAD.len()] {
    let time = |metric: Metric, quantile: usize| {
        let times = stage.distribution(metric);
        times.map_or_else(String::new, |times| {
            figure(times.figure(&QUANTILES[quantile]), format::time)
        })
    };
    [
        stage.stage.clone().unwrap_or_default(),
        figure(stage.named_rate("achieved_rate"), format::digits),
        format::share_of(stage.rates.success_rate),
        time(metric, 0),
        time(metric, P99),
        time(Metric::Ttft, 0),
        time(Metric::Itl, 0),
        tokens(stage).unwrap_or_default(),
    ]
}

/// A figure that may be used, or a dash.
fn figure(figure: Option<BoundedFigure>, format: impl Fn(f64) -> String) -> String {
    figure.and_then(|figure| figure.usable()).map_or_else(|| DASH.to_owned(), format)
}

/// The first stage, the last one, and then the worst: with the most requests without an answer, and
/// of equal ones the slowest.
fn by_importance(stages: &[&Group], metric: Metric) -> Vec<usize> {
    let time = |stage: &Group, quantile: usize| {
        let times = stage.distribution(metric);
        times.and_then(|times| times.raw_quantile(&QUANTILES[quantile])).unwrap_or_default()
    };
    let badness = |index: &usize| {
        let stage = stages[*index];
        let unanswered = 1.0 - stage.rates.success_rate.unwrap_or(1.0);
        (unanswered, time(stage, P99), time(stage, 0))
    };
    let mut others: Vec<_> = (1..stages.len().saturating_sub(1)).collect();
    others.sort_by(|a, b| {
        let (a, b) = (badness(a), badness(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.total_cmp(&a.2))
    });
    [0, stages.len().saturating_sub(1)].into_iter().chain(others).collect()
}
