//! Times by percentile.

use plimsoll_metrics::{DistributionSummary, Metric, QUANTILES, Quantile, RunSummary};
use plimsoll_report::format::{DASH, range};

use super::{Cell, Chart, Rows};

/// A set of times: what it is of, the run among several, and the metric.
pub(super) struct Times<'a> {
    pub(super) of: &'a str,
    pub(super) run: usize,
    pub(super) metric: Metric,
    pub(super) distribution: &'a DistributionSummary,
}

/// The headline time and those of streams of each target, without warm-up.
pub(super) fn by_target(summary: &RunSummary) -> Option<Chart> {
    let metrics = [summary.metadata.headline_time(), Metric::Ttft, Metric::Itl];
    let groups = summary.results.by_target.iter();
    let found = groups.flat_map(|group| {
        metrics.into_iter().filter_map(|metric| {
            let distribution = group.distribution(metric)?;
            Some(Times { of: group.target.as_deref()?, run: 0, metric, distribution })
        })
    });
    chart("Times by percentile", &found.collect::<Vec<_>>())
}

/// A line for each set of times, with the interval of each percentile.
pub(super) fn chart(title: &str, sets: &[Times<'_>]) -> Option<Chart> {
    let mut rows = Rows::named("percentiles");
    for times in sets {
        rows.cells.extend(QUANTILES.iter().map(|quantile| row(times, quantile)));
    }
    let drawn = rows.cells.iter().any(|row| row[3].value.is_number());
    let spec = include_str!("../../assets/charts/percentiles.json");
    drawn.then(|| Chart::named("percentiles", title, spec, &rows))
}

fn row(times: &Times<'_>, quantile: &Quantile) -> Vec<Cell> {
    let figure = times.distribution.figure(quantile);
    let ci = figure.and_then(|_| times.distribution.interval(quantile));
    let interval = figure.zip(ci).map_or_else(
        || DASH.to_owned(),
        |(figure, ci)| format!("[{}]", range(figure.value, ci.low, ci.high)),
    );
    vec![
        Cell::text(times.of),
        Cell::text(times.metric.title()),
        Cell::text(quantile.label),
        Cell::figure(figure),
        Cell::new((), interval),
        Cell::count(times.distribution.count),
        Cell::value(1.0 / (1.0 - quantile.q)),
        Cell::value(times.run),
        Cell::value(ci.map(|ci| ci.low)),
        Cell::value(ci.map(|ci| ci.high)),
    ]
}
