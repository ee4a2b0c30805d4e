//! What the generator's lateness may have done to differences of response times.
//!
//! Only response times count from an instant that the generator may miss. The rule is that of
//! ADR 0007: a figure is refused if without the generator's part it would be another one.

use plimsoll_stats::shift::Shift;
use plimsoll_stats::woodruff::Batched;

use crate::figure::{Figure, as_f64};
use crate::pairs::{Run, Two, value};
use crate::result::{Difference, Kind};

/// The share of a difference that may be the generator's.
const REFUSED_SHARE: f64 = 0.05;
/// No difference is refused for less than this, in nanoseconds: two clock readings around a system
/// call on a virtual machine.
const RESOLUTION_NS: f64 = 50_000.0;

/// The response times of two targets as they would be without late dispatches.
pub(crate) struct InTime {
    added: Batched,
    shift: Shift,
}

impl InTime {
    /// `None` for figures that no late dispatch changes.
    pub(crate) fn of(run: Run<'_>, two: Two, figure: Figure) -> Option<Self> {
        let in_time = |turn: &plimsoll_measure::PairedTurn| {
            Some(value(turn, figure)? - as_f64(turn.dispatch_lag))
        };
        (figure == Figure::ResponseTime).then(|| Self {
            added: run
                .added_by(two, |(target, reference)| Some(in_time(target)? - in_time(reference)?)),
            shift: run.shift_by(two, in_time),
        })
    }

    /// Refuses a difference that would be another one.
    pub(crate) fn refuse(&self, q: f64, found: &mut Difference) {
        let without = match found.kind {
            Kind::Added => self.added.value(q),
            Kind::Shift => self.shift.value(q),
            Kind::ShiftWithFailures => None,
        };
        let Some((without, (value, low, high))) = without.zip(found.measured()) else { return };
        let bound = (value - without).abs();
        let allowed = (value.abs() * REFUSED_SHARE).max((high - low) / 2.0).max(RESOLUTION_NS);
        if bound > allowed {
            let late = plimsoll_report::format::time(bound / 1e6);
            *found = Difference {
                value_ns: None,
                low_ns: None,
                high_ns: None,
                p: None,
                refused: Some(format!(
                    "the generator dispatched late: {late} of it may be the generator's own"
                )),
                ..found.clone()
            };
        }
    }
}
