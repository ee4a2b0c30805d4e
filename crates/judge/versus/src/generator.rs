//! What the generator may have added to differences.
//!
//! That part falls on all targets alike and in random order, so that most of it cancels in a
//! difference where it does not in a time of one target. A difference is never withheld for it: it
//! gets limits, its interval with what the generator may have done on either side, and is judged
//! by them.

use plimsoll_measure::{LEAST_SHARE, Nanos, PairedTurn};
use plimsoll_stats::shift::Shift;
use plimsoll_stats::woodruff::Batched;

use crate::figure::{Figure, as_f64};
use crate::pairs::{Run, Turns, Two, value};
use crate::result::{Difference, Kind};

/// Of which targets a doubt is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubted {
    Both,
    Target,
    Reference,
}

/// The times of two targets as they would be without the generator's part.
pub(crate) struct WithoutGenerator(Vec<(Batched, Shift)>);

impl WithoutGenerator {
    /// `None` if the generator added nothing to this figure.
    ///
    /// What it added by sending late is known. When bytes that it read late had arrived is not: so
    /// that is taken off both targets, and of each alone.
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

    /// Notes what of a difference may be the generator's, and between what the difference lies.
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
        // A late first token makes a mean gap shorter and a late last one longer, so that neither
        // variant is the extreme one.
        let (down, up) = if found.figure == Figure::MeanGap { (-most, most) } else { (down, up) };
        found.generator_ns = Some(most.round());
        found.at_least_ns = Some((low + down).round());
        found.at_most_ns = Some((high + up).round());
    }
}

/// All values of one target as they would be without the generator's part.
pub(crate) fn own_times(run: Run<'_>, target: usize, figure: Figure) -> Batched {
    let values = run.turns(target).filter_map(|turn| without(turn, figure, true)).collect();
    Batched::new(vec![vec![values]])
}

/// A time without what the generator added, and with `doubted` without what it may have added.
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

/// What the generator added to a time, in nanoseconds.
#[derive(Clone, Copy)]
struct Part {
    /// By sending late.
    sent: f64,
    /// By reading late, at most; less than zero where the time may be longer than measured.
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
            // A late read ends one gap late, and the next one is shorter by as much.
            Figure::LongestGap => {
                Self { sent: 0.0, doubt: resolved(own.first_token.max(own.last_token)) }
            }
        }
    }
}

/// Nothing, if it is less than can be resolved.
fn resolved(time: Nanos) -> f64 {
    if time < LEAST_SHARE { 0.0 } else { as_f64(time) }
}
