//! What the generator's lateness may have done to a difference of response times.

use crate::figure::{Figure, as_f64};
use crate::pairs::{Run, Two, value};

/// The share of a difference that may be the generator's.
const REFUSED_SHARE: f64 = 0.05;
/// No difference is refused for less than this, in nanoseconds: two clock readings around a system
/// call on a virtual machine (ADR 0007).
const RESOLUTION_NS: f64 = 50_000.0;

/// Why a median of differences is refused: without the lateness of its dispatches it would be
/// another one. Only response times count from an instant that the generator may miss.
pub(crate) fn refused(
    run: Run<'_>,
    two: Two,
    figure: Figure,
    (median, half_width): (f64, f64),
) -> Option<String> {
    if figure != Figure::ResponseTime {
        return None;
    }
    let without = run.added_by(two, |(target, reference)| {
        let added = value(target, figure)? - value(reference, figure)?;
        Some(added - (as_f64(target.dispatch_lag) - as_f64(reference.dispatch_lag)))
    });
    let bound = (median - without.value(0.5)?).abs();
    let allowed = (median.abs() * REFUSED_SHARE).max(half_width).max(RESOLUTION_NS);
    (bound > allowed).then(|| {
        let late = plimsoll_report::format::time(bound / 1e6);
        format!("the generator dispatched late: {late} of it may be the generator's own")
    })
}
