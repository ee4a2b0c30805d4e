//! The breakdown by stage, scenario and target: one line for each combination.

use plimsoll_metrics::{Group, Metric, QUANTILES, Quantile, RunSummary};

use super::load;
use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

/// The columns: heading, metric, and index of the quantile.
const COLUMNS: [(&str, Metric, usize); 8] = [
    ("resp. p50", Metric::ResponseTime, 0),
    ("p95", Metric::ResponseTime, 2),
    ("p99", Metric::ResponseTime, 3),
    ("p99.9", Metric::ResponseTime, 4),
    ("TTFT p50", Metric::Ttft, 0),
    ("p95", Metric::Ttft, 2),
    ("ITL p50", Metric::Itl, 0),
    ("p99", Metric::Itl, 3),
];

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Stages x scenarios x targets");
    if !is_crossed(summary) {
        return chapter;
    }
    let head = ["", "done/s", "ok"].into_iter().chain(COLUMNS.iter().map(|(title, ..)| *title));
    let mut table = Table::new(head.chain(["tokens/s"]));
    for cell in summary.results.cells.iter().filter(|cell| !cell.warmup) {
        table.row(row(cell, summary.metadata.targets.len() > 1));
    }
    chapter.table(&table);
    chapter
}

/// Whether at least two of stages, scenarios and targets have more than one member. Otherwise the
/// other tables show the same.
fn is_crossed(summary: &RunSummary) -> bool {
    let axes =
        [&summary.results.by_stage, &summary.results.by_scenario, &summary.results.by_target];
    axes.into_iter()
        .filter(|groups| groups.iter().filter(|group| !group.warmup).count() > 1)
        .count()
        > 1
}

fn row(cell: &Group, with_target: bool) -> Vec<String> {
    let target = cell.target.as_deref().filter(|_| with_target);
    let operation = cell.operation.as_deref();
    let labels = [cell.stage.as_deref(), cell.scenario.as_deref(), target, operation];
    let mut cells = vec![
        labels.into_iter().flatten().collect::<Vec<_>>().join(" "),
        format::rate_figure(cell.named_rate("throughput")),
        format::share_of(cell.counters.ok_share()),
    ];
    cells.extend(COLUMNS.iter().map(|(_, metric, q)| time(cell, *metric, &QUANTILES[*q])));
    cells.push(load::tokens(cell).unwrap_or_default());
    cells
}

/// Empty without a value, `-` with too few values.
fn time(cell: &Group, metric: Metric, quantile: &Quantile) -> String {
    let times = cell.distribution(metric);
    times.map(|times| format::figure(times.figure(quantile))).unwrap_or_default()
}
