//! Helpers shared by violations, causes and warnings.

use super::Reason;

/// Share of a limit that may be used: peaks are looked for once a second, and may be missed.
const HEADROOM_SHARE: f64 = 0.9;

pub(super) fn reason(what: &str, measured: String, bound: impl Into<String>, fix: &str) -> Reason {
    let (bound, fix) = (bound.into(), fix.to_owned());
    Reason { what: what.to_owned(), measured, bound, fix, causes: Vec::new(), figure: None }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Whether a peak came too close to its limit.
pub(super) fn beyond_headroom(peak: u64, limit: u64) -> bool {
    peak as f64 > limit as f64 * HEADROOM_SHARE
}
