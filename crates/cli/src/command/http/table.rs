//! The comparison of several endpoints.

use plimsoll_metrics::{DistributionSummary, Metric, QUANTILES, RunSummary};
use plimsoll_profile::redacted_path;
use plimsoll_report::format;
use plimsoll_report::table::{Layout, Table};

const COLUMNS: [&str; 7] = ["done/s", "completed", "p50", "p90", "p99", "max", "URL"];
/// URLs are the longest column: they come last, and are never truncated.
const LAYOUT: Layout = Layout { indent: 0, names: COLUMNS.len() - 1, ..Layout::new(usize::MAX) };

/// One row for each endpoint; the times are those of the reports' headlines.
pub(super) fn side_by_side<'a>(runs: impl Iterator<Item = (&'a String, &'a RunSummary)>) -> String {
    let mut table = Table::new(COLUMNS);
    let mut metric = Metric::ResponseTime;
    for (url, summary) in runs {
        // All have the same stages.
        metric = summary.metadata.headline_time();
        table.row(row(url, summary, metric));
    }
    let times = if metric == Metric::ServiceTime { "service times" } else { "response times" };
    format!("\nSide by side ({times})\n{}", table.text(&LAYOUT))
}

fn row(url: &str, summary: &RunSummary, metric: Metric) -> [String; COLUMNS.len()] {
    let total = &summary.results.total;
    let times = total.distribution(metric);
    let figure = |index: usize| format::figure(times.and_then(|t| t.figure(&QUANTILES[index])));
    [
        format::rate_figure(total.named_rate("throughput")),
        format!("{} of {}", total.counters.completed, total.counters.scheduled),
        figure(0),
        figure(1),
        figure(3),
        format::figure(times.map(DistributionSummary::max_figure)),
        redacted_path(url),
    ]
}
