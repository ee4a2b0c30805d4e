//! Confidence intervals of the headline percentiles.

use plimsoll_metrics::{Group, Metric, QUANTILES, RunSummary};

use super::Labelled;
use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

/// A column: a percentile of a metric.
struct Column {
    title: &'static str,
    metric: Metric,
    /// Its index in [`QUANTILES`].
    quantile: usize,
}

/// The columns. All other intervals are in `summary.json` and `report.csv`.
const COLUMNS: [Column; 5] = [
    Column { title: "response p50", metric: Metric::ResponseTime, quantile: 0 },
    Column { title: "response p99", metric: Metric::ResponseTime, quantile: 3 },
    Column { title: "TTFT p50", metric: Metric::Ttft, quantile: 0 },
    Column { title: "TTFT p99", metric: Metric::Ttft, quantile: 3 },
    Column { title: "ITL p99", metric: Metric::Itl, quantile: 3 },
];

const NOTE: &str = "The percentile lies in the interval with 95 % confidence; the intervals allow for slow requests \
    in bursts (see docs/statistics.md). -: no interval, for the reason in summary.json: too few independent samples, \
    or a stage of less than 8 seconds.";

pub(super) fn chapter(summary: &RunSummary, groups: &[Labelled<'_>]) -> Chapter {
    let mut chapter = Chapter::new("Confidence intervals");
    let columns: Vec<_> =
        COLUMNS.iter().filter(|column| has_value(&summary.results.total, column)).collect();
    let mut cells = groups.iter().flat_map(|(_, group)| columns.iter().map(|c| (*group, *c)));
    if !cells.any(|(group, column)| has_interval(group, column)) {
        return chapter;
    }
    let head = [""].into_iter().chain(columns.iter().map(|column| column.title));
    let mut table = Table::new(head);
    for (label, group) in groups {
        let mut cells = vec![(*label).to_owned()];
        cells.extend(columns.iter().map(|column| cell(group, column)));
        table.row(cells);
    }
    chapter.table(&table);
    chapter.text(NOTE);
    chapter
}

/// Whether the run has such a percentile.
fn has_value(total: &Group, column: &Column) -> bool {
    let times = total.distribution(column.metric);
    times.is_some_and(|times| times.figure(&QUANTILES[column.quantile]).is_some())
}

fn has_interval(group: &Group, column: &Column) -> bool {
    let times = group.distribution(column.metric);
    times.is_some_and(|times| times.interval(&QUANTILES[column.quantile]).is_some())
}

/// `5.92ms [5.70, 6.20]`, all in the unit of the first.
fn cell(group: &Group, column: &Column) -> String {
    let quantile = &QUANTILES[column.quantile];
    let Some(times) = group.distribution(column.metric) else { return String::new() };
    let Some(value) = times.figure(quantile) else { return "-".to_owned() };
    let bounds = times.interval(quantile).map(|i| format::range(value.value, i.low, i.high));
    format!("{} [{}]", format::figure(Some(value)), bounds.unwrap_or_else(|| "-".to_owned()))
}
