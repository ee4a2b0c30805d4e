//! Distributions of times: a block per group.

use plimsoll_metrics::{DistributionSummary, Group, Metric, QUANTILES, samples_needed};

use super::Labelled;
use crate::format;
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

fn label_with_need(q: &plimsoll_metrics::Quantile) -> String {
    format!("{} {}", q.label, format::count(samples_needed(q.q)))
}
