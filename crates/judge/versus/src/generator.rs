//! The measurement error of differences.
//!
//! The generator delays all targets alike and in random order, so most of its part cancels in a
//! difference, unlike in the times of one target. A difference is never withheld because of it: its
//! interval is widened by the measurement error on either side, and the verdict uses these limits.

use plimsoll_measure::{LEAST_SHARE, Nanos, PairedTurn};
use plimsoll_stats::shift::Shift;
use plimsoll_stats::woodruff::Batched;

use crate::figure::{Figure, as_f64};
use crate::pairs::{Run, Turns, Two, value};
use crate::result::{Difference, Kind};

/// The targets whose times are reduced by the doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubted {
    Both,
    Target,
    Reference,
}

/// The times of two targets without the generator's part.
pub(crate) struct WithoutGenerator(Vec<(Batched, Shift)>);

impl WithoutGenerator {
    /// Returns `None` if the generator added nothing to this figure.
    ///
    /// The delay of late sends is known exactly. The arrival of bytes that were read late is not,
    /// so that part is subtracted from both targets, and from each alone.
    pub(crate) fn of(run: Run<'_>, two: Two, figure: Figure) -> Option<Self> {
        let parts: Vec<Part> = run
            .pairs(two)
            .flat_map(|(target, reference)| [target, reference])
            .map(|turn| Part::of(turn, figure))
            .collect();
        let variants: &[Doubted] = if parts.iter().any(|part| part.doubt != 0.0) {
            &[Doubted::Both, Doubted::Target, Doubted::Reference]
        } else if parts.iter().any(|part| part.sent != 0.0) {
            &[Doubted::Both]
        } else {
            return None;
        };
        Some(Self(variants.iter().map(|doubted| variant(run, two, figure, *doubted)).collect()))
    }

    /// Sets the measurement error of a difference, and the limits that include it.
    pub(crate) fn limit(&self, q: f64, found: &mut Difference) {
        let Some((value, low, high)) = found.measured() else { return };
        let without: Vec<f64> = self
            .0
            .iter()
            .filter_map(|(added, shift)| match found.kind {
                Kind::Added => added.value(q),
                Kind::Shift => shift.value(q),
            })
            .map(|without| without - value)
            .collect();
        if without.is_empty() {
            return;
        }
        let (down, up) = without
            .iter()
            .fold((0.0_f64, 0.0_f64), |(down, up), off| (down.min(*off), up.max(*off)));
        let most = up.max(-down);
        // A late first token shortens a mean gap and a late last one lengthens it, so neither
        // variant is an extreme.
        let (down, up) = if found.figure == Figure::MeanGap { (-most, most) } else { (down, up) };
        found.generator_ns = Some(most.round());
        found.at_least_ns = Some((low + down).round());
        found.at_most_ns = Some((high + up).round());
    }
}

/// All values of one target without the generator's part.
pub(crate) fn own_times(run: Run<'_>, target: usize, figure: Figure) -> Batched {
    let values = run.turns(target).filter_map(|turn| without(turn, figure, true)).collect();
    Batched::new(vec![vec![values]])
}

/// A time without the generator's known delay and, with `doubted`, without its possible delay.
fn without(turn: &PairedTurn, figure: Figure, doubted: bool) -> Option<f64> {
    let Part { sent, doubt } = Part::of(turn, figure);
    let off = if doubted { sent + doubt } else { sent };
    Some((value(turn, figure)? - off).max(0.0))
}

fn variant(run: Run<'_>, two: Two, figure: Figure, doubted: Doubted) -> (Batched, Shift) {
    let target = |turn: &PairedTurn| without(turn, figure, doubted != Doubted::Reference);
    let reference = |turn: &PairedTurn| without(turn, figure, doubted != Doubted::Target);
    (
        run.added_by(two, |turns: Turns<'_>| Some(target(turns.0)? - reference(turns.1)?)),
        run.shift_of(two, target, reference),
    )
}

/// The generator's part of a time, in nanoseconds.
#[derive(Clone, Copy)]
struct Part {
    /// Added by late sends.
    sent: f64,
    /// At most added by late reads; negative if the true time may be longer than measured.
    doubt: f64,
}

impl Part {
    fn of(turn: &PairedTurn, figure: Figure) -> Self {
        let own = &turn.generator;
        match figure {
            Figure::ResponseTime => {
                Self { sent: resolved(own.dispatch + own.send), doubt: resolved(own.finished) }
            }
            Figure::ServiceTime => Self { sent: resolved(own.send), doubt: resolved(own.finished) },
            Figure::Ttft => Self { sent: resolved(own.send), doubt: resolved(own.first_token) },
            Figure::MeanGap => {
                let (first, last) = (resolved(own.first_token), resolved(own.last_token));
                let by = if first > last { -first } else { last };
                Self { sent: 0.0, doubt: by / f64::from(turn.gaps.max(1)) }
            }
            // A late read lengthens one gap and shortens the next one by as much.
            Figure::LongestGap => {
                Self { sent: 0.0, doubt: resolved(own.first_token.max(own.last_token)) }
            }
        }
    }
}

/// Zero below the resolution of the clock.
fn resolved(time: Nanos) -> f64 {
    if time < LEAST_SHARE { 0.0 } else { as_f64(time) }
}
