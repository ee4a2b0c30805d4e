//! Distributions of times: a block per group.

use plimsoll_metrics::{
    DistributionSummary, Group, Metric, QUANTILES, Quantile, Refusal, RunSummary, samples_needed,
};

use super::{Labelled, load};
use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

/// The metrics that readers look for first; `summary.json` has the whole catalog.
pub(super) const SHOWN: [Metric; 15] = [
    Metric::ResponseTime,
    Metric::ServiceTime,
    Metric::Ttfb,
    Metric::Ttft,
    Metric::Itl,
    Metric::Tpot,
    Metric::ConnectionWait,
    Metric::Dns,
    Metric::Connect,
    Metric::Tls,
    Metric::Upgrade,
    Metric::DispatchLag,
    Metric::ServerTime,
    Metric::RejectedResponseTime,
    Metric::UnsuccessfulResponseTime,
];

pub(super) fn table(groups: &[Labelled<'_>]) -> Table {
    let mut table = Table::new(headings());
    for (label, group) in groups {
        block(&mut table, label, group);
    }
    table
}

/// The columns of distributions.
pub(super) fn headings() -> Vec<&'static str> {
    let mut headings = vec!["", "count", "mean"];
    headings.extend(QUANTILES.iter().map(|quantile| quantile.label));
    headings.push("max");
    headings
}

fn block(table: &mut Table, label: &str, group: &Group) {
    table.row(vec![label.to_owned()]);
    for metric in SHOWN {
        if let Some(times) = group.distribution(metric) {
            table.row(row(group, metric, times));
        } else if metric == Metric::Tpot && came_in_one_piece(group) {
            table.row(vec![format!("  {}", metric.title()), "in one piece".to_owned()]);
        }
    }
}

fn row(group: &Group, metric: Metric, times: &DistributionSummary) -> Vec<String> {
    let mut figures = vec![Some(times.mean_figure())];
    figures.extend(QUANTILES.iter().map(|quantile| times.figure(quantile)));
    figures.push(Some(times.max_figure()));
    let mark = if group.has_estimated_tokens(metric) { "~" } else { "" };
    let mut cells = vec![format!("  {}", metric.title()), format::count(times.count)];
    cells.extend(figures.into_iter().map(|figure| match figure {
        Some(_) => format!("{mark}{}", format::figure(figure)),
        None => format::figure(None),
    }));
    cells
}

/// Whether all streams of several events arrived in one piece, without time between tokens.
fn came_in_one_piece(group: &Group) -> bool {
    let streams = group.distribution(Metric::Ttft).map_or(0, |times| times.count);
    streams > 0
        && group.counters.events_together >= streams
        && group.distribution(Metric::Itl).is_none()
}

/// Whether a percentile of the group's block has too few samples.
pub(super) fn lacks_samples(group: &Group) -> bool {
    let shown = SHOWN.into_iter().filter_map(|metric| group.distribution(metric));
    shown
        .flat_map(|times| QUANTILES.iter().map(move |quantile| times.figure(quantile)))
        .any(|value| value.is_none())
}

/// The note on percentiles with too few samples.
pub(super) fn footnote() -> String {
    let needs: Vec<_> = QUANTILES.iter().map(label_with_need).collect();
    format!("-: too few samples for this percentile. They need: {}.", needs.join(", "))
}

fn label_with_need(q: &Quantile) -> String {
    format!("{} {}", q.label, format::count(samples_needed(q.q)))
}

// Confidence intervals of the headline percentiles.

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

pub(super) fn intervals_chapter(summary: &RunSummary, groups: &[Labelled<'_>]) -> Chapter {
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

// The limits of the figures in tables: what the generator may have added, what requests without an
// end leave open.

/// Explains the marks, if any is shown.
pub(super) fn footnotes<'a>(groups: impl Iterator<Item = &'a Group> + Clone) -> Vec<&'static str> {
    let times = groups.clone().flat_map(|group| group.distributions.values());
    let of_times = times.flat_map(|times| times.refused.values());
    let reasons = of_times.chain(groups.flat_map(|group| group.refused_rates.values()));
    let reasons: Vec<_> = reasons.copied().collect();
    let notes = [
        (Refusal::Generator, "!: measurement error above 5 %, listed below its table."),
        (Refusal::Censored, "?: requests without an end may make it longer."),
    ];
    notes.iter().filter(|(why, _)| reasons.contains(why)).map(|(_, note)| *note).collect()
}

/// Lists measurement errors: for each marked figure, and for the main times from 1 %.
pub(super) fn add_bounds(chapter: &mut Chapter, groups: &[Labelled<'_>]) {
    let mut lines = Vec::new();
    for (label, group) in groups {
        let shown = SHOWN.into_iter();
        let metrics = shown.filter_map(|metric| Some((metric, group.distribution(metric)?)));
        let parts: Vec<_> =
            metrics.filter_map(|(metric, times)| notable_bounds(metric, times)).collect();
        if !parts.is_empty() {
            lines.push(format!("{label}: {}.", parts.join("; ")));
        }
    }
    if !lines.is_empty() {
        chapter.text("Measurement error, at most:");
        chapter.texts(lines);
    }
}

/// The times of which a part that is too small for a mark is said, too.
const MAIN: [Metric; 4] = [Metric::ResponseTime, Metric::ServiceTime, Metric::Ttft, Metric::Itl];

/// The figures to which the generator may have added much, in the order of the table.
fn notable_bounds(metric: Metric, times: &DistributionSummary) -> Option<String> {
    let quantiles = QUANTILES.iter().filter_map(|q| Some((q.label, times.figure(q)?)));
    let all = std::iter::once(("mean", times.mean_figure()))
        .chain(quantiles)
        .chain([("max", times.max_figure())]);
    let notable = all.filter(|(label, figure)| {
        let is_main = MAIN.contains(&metric) && !["mean", "max"].contains(label);
        figure.refused == Some(Refusal::Generator) || (is_main && figure.has_notable_bound())
    });
    let figures: Vec<_> =
        notable.map(|(label, f)| format!("{label} {}", format::time(f.bound))).collect();
    (!figures.is_empty()).then(|| format!("{} {}", metric.title(), figures.join(", ")))
}

// The breakdown by stage, scenario and target: one line for each combination.

/// The columns: heading, metric, and index of the quantile.
const BREAKDOWN_COLUMNS: [(&str, Metric, usize); 8] = [
    ("resp. p50", Metric::ResponseTime, 0),
    ("p95", Metric::ResponseTime, 2),
    ("p99", Metric::ResponseTime, 3),
    ("p99.9", Metric::ResponseTime, 4),
    ("TTFT p50", Metric::Ttft, 0),
    ("p95", Metric::Ttft, 2),
    ("ITL p50", Metric::Itl, 0),
    ("p99", Metric::Itl, 3),
];

pub(super) fn breakdown_chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Stages x scenarios x targets");
    if !is_crossed(summary) {
        return chapter;
    }
    let head =
        ["", "done/s", "ok"].into_iter().chain(BREAKDOWN_COLUMNS.iter().map(|(title, ..)| *title));
    let mut table = Table::new(head.chain(["tokens/s"]));
    for cell in summary.results.cells.iter().filter(|cell| !cell.warmup) {
        table.row(breakdown_row(cell, summary.metadata.targets.len() > 1));
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

fn breakdown_row(cell: &Group, with_target: bool) -> Vec<String> {
    let target = cell.target.as_deref().filter(|_| with_target);
    let operation = cell.operation.as_deref();
    let labels = [cell.stage.as_deref(), cell.scenario.as_deref(), target, operation];
    let mut cells = vec![
        labels.into_iter().flatten().collect::<Vec<_>>().join(" "),
        format::rate_figure(cell.named_rate("throughput")),
        format::share_of(cell.counters.ok_share()),
    ];
    cells
        .extend(BREAKDOWN_COLUMNS.iter().map(|(_, metric, q)| time(cell, *metric, &QUANTILES[*q])));
    cells.push(load::tokens(cell).unwrap_or_default());
    cells
}

/// Empty without a value, `-` with too few values.
fn time(cell: &Group, metric: Metric, quantile: &Quantile) -> String {
    let times = cell.distribution(metric);
    times.map(|times| format::figure(times.figure(quantile))).unwrap_or_default()
}
