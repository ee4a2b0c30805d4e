//! The charts of the page, each with its numbers.

mod exemplar_rows;
mod forest;
mod heat_map;
mod instrument;
mod outcomes;
mod percentiles;
mod rates;
mod token_timeline;
mod waterfall;

use crate::drawn_chart::Chart;
use crate::input::Input;

/// Every chart for which there are data.
pub(crate) fn all(input: &Input<'_>) -> Vec<Chart> {
    let mut charts = Vec::new();
    charts.extend(input.versus.and_then(forest::chart));
    if let Some(timeline) = input.timeline.filter(|timeline| !timeline.intervals.is_empty()) {
        charts.extend(heat_map::charts(input.summary, timeline));
        charts.push(rates::rates(timeline));
        charts.push(rates::in_flight(timeline));
        charts.push(outcomes::chart(timeline));
        charts.extend(instrument::charts(timeline));
    }
    charts.extend(percentiles::chart(input.summary));
    if let Some(exemplars) = input.exemplars {
        charts.extend(waterfall::charts(exemplars));
        charts.extend(token_timeline::charts(exemplars));
    }
    charts
}
