//! One line for each stage.

use plimsoll_metrics::{BoundedFigure, DistributionSummary, Group, Metric, QUANTILES, RunSummary};

use super::chapters::tokens;
use crate::format;
use crate::screen::{Rows, Screen};
use crate::table::Table;

/// The place of the 95th percentile in `QUANTILES`.
const P95: usize = 2;
/// The place of the 99th percentile.
const P99: usize = 3;
/// Good responses per second that lag behind the requests sent by more are shown.
const DIFFERS: f64 = 0.05;

/// The most stages: first, worst, last.
const MOST: usize = 10;

const HEAD: [&str; 14] = [
    "", "sent/s", "done/s", "ok", "service", "mean", "p50", "p90", "p95", "p99", "max", "TTFT",
    "ITL", "tokens/s",
];

pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    let metric = summary.metadata.headline_time();
    let stages: Vec<_> = measured_stages(summary).collect();
    let known = Known { median: has(&stages, metric, 0), p95: has(&stages, metric, P95) };
    let mut table = Table::new(HEAD);
    for stage in &stages {
        table.row(row(stage, metric, known));
    }
    let first = by_importance(&stages, metric);
    let drops_dashes = true;
    let rows = Rows { table, unit: "stages", first, most: MOST, drops_dashes, ..Rows::default() };
    screen.rows(&heading(summary, metric), rows);
}

/// The stages of the screen: all but warm-up.
fn measured_stages(summary: &RunSummary) -> impl Iterator<Item = &Group> {
    summary.results.by_stage.iter().filter(|stage| !stage.warmup)
}

/// Completed requests per second, where they are not those sent.
fn completed(stage: &Group) -> String {
    let throughput = stage.named_rate("throughput");
    let values = stage.named_rate("achieved_rate").zip(throughput);
    // What failed is in the column of its own.
    let ok = stage.counters.ok_share().unwrap_or(1.0);
    let differs = values.is_some_and(|(sent, done)| done.value < sent.value * ok * (1.0 - DIFFERS));
    if differs { format::limited_rate(throughput) } else { String::new() }
}

/// The median service time, where responses waited for a slot of `max_in_flight`.
fn service(stage: &Group) -> String {
    let times = stage.distribution(Metric::ServiceTime);
    let times = times.filter(|_| stage.counters.arrivals_held() > 0);
    times.map_or_else(String::new, |times| format::limited_time(times.figure(&QUANTILES[0])))
}

/// Which percentiles of the whole time a stage has.
#[derive(Clone, Copy)]
struct Known {
    median: bool,
    p95: bool,
}

/// Whether a stage has requests enough for this one of `QUANTILES`.
fn has(stages: &[&Group], metric: Metric, quantile: usize) -> bool {
    stages.iter().any(|stage| {
        let times = stage.distribution(metric);
        times.is_some_and(|times| times.raw_quantile(&QUANTILES[quantile]).is_some())
    })
}

/// What the columns of times are, and what the notation of limits means where one is shown.
fn heading(summary: &RunSummary, metric: Metric) -> String {
    let whole = match metric {
        Metric::ServiceTime => "service times",
        _ => "response times",
    };
    let total = &summary.results.total;
    let parts = match (total.distribution(Metric::Ttft), total.distribution(Metric::Itl)) {
        (Some(_), Some(_)) => "; TTFT and ITL are medians",
        (Some(_), None) => "; TTFT is a median",
        _ => "",
    };
    let ours =
        if shows_limits(summary, metric) { "; (-): so much may be the generator's" } else { "" };
    format!("{whole}{parts}{ours}")
}

fn shows_limits(summary: &RunSummary, metric: Metric) -> bool {
    measured_stages(summary).any(|stage| {
        let times = stage.distribution(metric).into_iter();
        let whole = times.flat_map(|times| QUANTILES.iter().filter_map(|q| times.figure(q)));
        let parts = [Metric::Ttft, Metric::Itl]
            .into_iter()
            .filter_map(|part| stage.distribution(part)?.figure(&QUANTILES[0]));
        whole.chain(parts).any(|figure| figure.has_notable_bound())
    })
}

/// Mean and maximum stand for the percentiles where no stage has requests enough for a median, and
/// the 90th percentile for the 95th: all of them do not fit into a line of 80 columns.
fn row(stage: &Group, metric: Metric, known: Known) -> [String; HEAD.len()] {
    let time = |metric: Metric, quantile: usize| {
        let times = stage.distribution(metric);
        times.map_or_else(String::new, |times| {
            format::limited_time(times.figure(&QUANTILES[quantile]))
        })
    };
    let whole = |of: fn(&DistributionSummary) -> BoundedFigure| {
        let times = stage.distribution(metric).filter(|_| !known.median);
        times.map_or_else(String::new, |times| format::limited_time(Some(of(times))))
    };
    [
        stage.stage.clone().unwrap_or_default(),
        format::limited_rate(stage.named_rate("achieved_rate")),
        completed(stage),
        format::share_of(stage.counters.ok_share()),
        service(stage),
        whole(DistributionSummary::mean_figure),
        time(metric, 0),
        if known.p95 { String::new() } else { time(metric, 1) },
        time(metric, P95),
        time(metric, P99),
        whole(DistributionSummary::max_figure),
        time(Metric::Ttft, 0),
        time(Metric::Itl, 0),
        tokens(stage).unwrap_or_default(),
    ]
}

/// The first stage, the last one, and then the worst: with the most requests without an answer, and
/// of equal ones the slowest.
fn by_importance(stages: &[&Group], metric: Metric) -> Vec<usize> {
    let mut others: Vec<_> = (1..stages.len().saturating_sub(1)).collect();
    others.sort_by(|a, b| {
        let (a, b) = (badness(stages[*a], metric), badness(stages[*b], metric));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.total_cmp(&a.2))
    });
    [0, stages.len().saturating_sub(1)].into_iter().chain(others).collect()
}

/// The share that got no good answer, then the 99th percentile, then the median.
fn badness(stage: &Group, metric: Metric) -> (f64, f64, f64) {
    let unanswered = 1.0 - stage.counters.ok_share().unwrap_or(1.0);
    let [p99, median] = [P99, 0].map(|quantile| {
        let times = stage.distribution(metric);
        times.and_then(|times| times.raw_quantile(&QUANTILES[quantile])).unwrap_or_default()
    });
    (unanswered, p99, median)
}
