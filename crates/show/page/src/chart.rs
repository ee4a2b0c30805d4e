//! The charts of the pages, each with its numbers.

mod added;
mod decisions;
mod exemplar_rows;
mod forest;
mod gates;
mod heat_map;
mod instrument;
mod knee;
mod load_curve;
mod outcomes;
mod percentiles;
mod rates;
mod runs;
mod shares;
mod token_timeline;
mod waterfall;

pub(crate) use knee::name_of;
use plimsoll_compare::Comparison;
use plimsoll_knee::KneeReport;

use crate::drawn_chart::Chart;
use crate::input::{Input, Suite};

/// Every chart of a run for which there are data.
pub(crate) fn all(input: &Input<'_>) -> Vec<Chart> {
    let mut charts = Vec::new();
    charts.extend(input.versus.and_then(forest::chart));
    charts.extend(input.versus.and_then(added::chart));
    if let Some(timeline) = input.timeline.filter(|timeline| !timeline.intervals.is_empty()) {
        charts.extend(heat_map::charts(input.summary, timeline));
        charts.push(rates::rates(timeline));
        charts.push(rates::in_flight(timeline));
        charts.push(outcomes::chart(timeline));
        charts.extend(instrument::charts(timeline, input.summary.metadata.environment.cpu_count));
    }
    charts.extend(load_curve::chart(input.summary));
    charts.extend(percentiles::of_run(input.summary));
    charts.extend(shares::charts(input.summary));
    charts.extend(decisions::chart(input.summary));
    if let Some(exemplars) = input.exemplars {
        charts.extend(waterfall::charts(exemplars, input.server));
        charts.extend(token_timeline::charts(exemplars));
    }
    charts
}

/// Every chart of a comparison; `gates` is its table, a row for each gate.
pub(crate) fn of_comparison(comparison: &Comparison) -> Vec<Chart> {
    let charts =
        [gates::chart(comparison), runs::chart(comparison), percentiles::of_comparison(comparison)];
    charts.into_iter().flatten().collect()
}

/// What is added in each comparison of a suite.
pub(crate) fn of_suite(suite: &Suite<'_>) -> Vec<Chart> {
    let numbered = suite.comparisons.iter().enumerate();
    numbered.filter_map(|(nth, (name, versus))| forest::in_suite(nth, name, versus)).collect()
}

/// Every chart of a search of knees.
pub(crate) fn of_knee(report: &KneeReport) -> Vec<Chart> {
    knee::charts(report)
}
