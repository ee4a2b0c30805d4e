//! Columns that several tables share.

use crate::result::{Figures, MeasurementResult};
use plimsoll_report::format::{DASH, count, digits, or_dash, percent, time_or_dash, time_us};

/// The label with its marker.
pub(super) fn label(result: &MeasurementResult) -> String {
    format!("{}{}", result.label, result.marker())
}

/// Throughput, with half its range over the passes.
pub(super) fn throughput(result: &MeasurementResult) -> String {
    let Some(spread) = result.spread(|figures| figures.requests_per_s) else {
        return DASH.to_owned();
    };
    let median = digits(spread.median);
    if spread.count > 1 { format!("{median} ±{:.0}%", spread.relative() * 100.0) } else { median }
}

/// A time.
pub(super) fn time(result: &MeasurementResult, of: fn(&Figures) -> Option<f64>) -> String {
    time_or_dash(result.figures().as_ref().and_then(of))
}

/// The number of errors.
pub(super) fn errors(result: &MeasurementResult) -> String {
    result.figures().map_or_else(|| DASH.to_owned(), |figures| count(figures.errors))
}

/// The number of requests.
pub(super) fn requests(result: &MeasurementResult) -> String {
    result.figures().map_or_else(|| DASH.to_owned(), |figures| count(figures.requests))
}

/// CPU time of the gateway per request.
pub(super) fn cpu(result: &MeasurementResult) -> String {
    or_dash(result.figures().and_then(|figures| figures.gateway_cpu_us), time_us)
}

/// CPU use of the gateway's core.
pub(super) fn gateway_busy(result: &MeasurementResult) -> String {
    or_dash(result.figures().and_then(|figures| figures.busy.gateway), percent)
}

/// CPU use of the load's core, including the provider's if they share it.
pub(super) fn load_busy(result: &MeasurementResult) -> String {
    or_dash(
        result.figures().and_then(|figures| {
            let provider = figures.busy.provider.filter(|_| figures.busy.shared).unwrap_or(0.0);
            Some(figures.busy.generator? + provider)
        }),
        percent,
    )
}
