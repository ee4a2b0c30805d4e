//! Confidence intervals of the headline percentiles.

use plimsoll_metrics::{Group, Metric, QUANTILES, Quantile, RunSummary};

use super::table::Table;
use super::{Labelled, Page, format};

/// The columns: heading, metric, and index of the quantile. All other intervals are in
/// `summary.json` and `report.csv`.
const COLUMNS: [(&str, Metric, usize); 5] = [
    ("response p50", Metric::ResponseTime, 0),
    ("response p99", Metric::ResponseTime, 3),
    ("TTFT p50", Metric::Ttft, 0),
    ("TTFT p99", Metric::Ttft, 3),
    ("ITL p99", Metric::Itl, 3),
];

const NOTE: &str = "The percentile lies in the interval with 95 % confidence; the intervals allow for slow requests \
    in bursts (see docs/statistics.md). -: no interval, for the reason in summary.json: too few independent samples, \
    or a stage of less than 8 seconds.";

pub(super) fn write(page: &mut Page, summary: &RunSummary, groups: &[Labelled<'_>]) {
    let columns: Vec<_> =
        COLUMNS.iter().filter(|column| has_value(&summary.results.total, column)).collect();
    if columns.is_empty() {
        return;
    }
    page.heading("Confidence intervals");
    let head = [""].into_iter().chain(columns.iter().map(|(title, ..)| *title));
    let mut table = Table::new(head);
    for (label, group) in groups {
        let mut cells = vec![(*label).to_owned()];
        cells.extend(columns.iter().map(|(_, metric, q)| cell(group, *metric, &QUANTILES[*q])));
        table.row(cells);
    }
    page.table(&table);
    page.note(NOTE);
}

/// Whether the run has such a percentile.
fn has_value(total: &Group, (_, metric, q): &(&str, Metric, usize)) -> bool {
    total.distribution(*metric).is_some_and(|times| times.figure(&QUANTILES[*q]).is_some())
}

/// `5.92ms [5.70, 6.20]`, all in the unit of the first.
fn cell(group: &Group, metric: Metric, quantile: &Quantile) -> String {
    let Some(times) = group.distribution(metric) else { return String::new() };
    let Some(value) = times.figure(quantile) else { return "-".to_owned() };
    let bounds = times.interval(quantile).map(|i| format::range(value.value, i.low, i.high));
    format!("{} [{}]", format::figure(Some(value)), bounds.unwrap_or_else(|| "-".to_owned()))
}
