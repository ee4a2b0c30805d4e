//! Bounds and helpers shared by violations and warnings.

use super::Reason;
use crate::health::InstrumentHealth;

/// Lateness below this is never held against a run, in milliseconds: a scheduler delays even an
/// idle process by this much now and then.
pub(super) const LAG_FLOOR_MS: f64 = 1.0;
/// A worker that ran or waited for its CPU for more than this share of the time is saturated.
pub(super) const BUSY_SHARE: f64 = 0.9;
/// Share of a limit that may be used: peaks are looked for once a second, and may be missed.
const HEADROOM_SHARE: f64 = 0.9;

pub(super) fn reason(what: &str, measured: String, bound: impl Into<String>, fix: &str) -> Reason {
    Reason { what: what.to_owned(), measured, bound: bound.into(), fix: fix.to_owned() }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Whether a peak came too close to its limit.
pub(super) fn beyond_headroom(peak: u64, limit: u64) -> bool {
    peak as f64 > limit as f64 * HEADROOM_SHARE
}

/// The demand for a CPU of the most saturated worker, if one is saturated.
pub(super) fn saturated(health: &InstrumentHealth) -> Option<f64> {
    health.highest_demand().filter(|&share| share > BUSY_SHARE)
}
