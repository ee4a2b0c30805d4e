//! Columns that several tables have.

use crate::cell::{Figures, MeasurementResult};
use crate::words::{dash, micros, millis, percent, rate, whole};

/// A label with its mark.
pub(super) fn label(cell: &MeasurementResult) -> String {
    format!("{}{}", cell.label, cell.mark())
}

/// Throughput, with half its range over the passes.
pub(super) fn throughput(cell: &MeasurementResult) -> String {
    let Some(spread) = cell.spread(|figures| figures.requests_per_s) else { return dash() };
    let median = rate(Some(spread.median));
    if spread.count > 1 { format!("{median} ±{:.0} %", spread.relative() * 100.0) } else { median }
}

/// A time of a cell.
pub(super) fn time(cell: &MeasurementResult, of: fn(&Figures) -> Option<f64>) -> String {
    millis(cell.figures().as_ref().and_then(of))
}

/// Errors of a cell.
pub(super) fn errors(cell: &MeasurementResult) -> String {
    cell.figures().map_or_else(dash, |figures| whole(figures.errors))
}

/// Requests of a cell.
pub(super) fn requests(cell: &MeasurementResult) -> String {
    cell.figures().map_or_else(dash, |figures| whole(figures.requests))
}

/// CPU time of the gateway per request.
pub(super) fn cpu(cell: &MeasurementResult) -> String {
    micros(cell.figures().and_then(|figures| figures.gateway_cpu_us))
}

/// How busy the gateway's core was.
pub(super) fn gateway_busy(cell: &MeasurementResult) -> String {
    percent(cell.figures().and_then(|figures| figures.busy.gateway))
}

/// How busy the load's core was, with the provider's part where they share it.
pub(super) fn load_busy(cell: &MeasurementResult) -> String {
    percent(cell.figures().and_then(|figures| {
        let provider = figures.busy.provider.filter(|_| figures.busy.shared).unwrap_or(0.0);
        Some(figures.busy.generator? + provider)
    }))
}
