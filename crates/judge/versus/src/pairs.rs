//! Values of pairs, grouped by stage and batch.

use plimsoll_measure::{Block, Outcome, PairedTurn, Side};
use plimsoll_stats::shift::{BatchPair, Shift};
use plimsoll_stats::woodruff::Batched;
use plimsoll_stats::{Looks, NoIntervalReason};

use crate::batching::{Batching, Place};
use crate::figure::Figure;

/// The blocks of a run with their batches.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) blocks: &'a [Block],
    pub(crate) batching: &'a Batching,
}

/// Two targets by their position in a block; the difference is `target` minus `reference`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Two {
    pub(crate) target: usize,
    pub(crate) reference: usize,
}

/// The turns of one block on two targets.
pub(crate) type Turns<'a> = (&'a PairedTurn, &'a PairedTurn);

impl<'a> Run<'a> {
    /// The turns of measured blocks that both targets carried out, with stage and batch.
    pub(crate) fn both(self, two: Two) -> impl Iterator<Item = (usize, usize, Turns<'a>)> {
        self.batching.places(self.blocks).filter_map(move |(place, block)| match place {
            Place::Measured { stage, batch } => Some((stage, batch, turns(block, two)?)),
            Place::Alone { .. } => None,
        })
    }

    /// Measured blocks that both targets carried out.
    pub(crate) fn pairs(self, two: Two) -> impl Iterator<Item = Turns<'a>> {
        self.both(two).map(|(_, _, turns)| turns)
    }

    /// Overhead per request as returned by `difference`, which is `None` for a pair without a
    /// value.
    pub(crate) fn added_by(
        self,
        two: Two,
        difference: impl Fn(Turns<'a>) -> Option<f64>,
    ) -> Batched {
        let mut batches: Vec<Vec<Vec<f64>>> = self.batching.by_batch();
        for (stage, batch, turns) in self.both(two) {
            batches[stage][batch].extend(difference(turns));
        }
        self.batched(batches)
    }

    /// Groups values by stage and batch.
    pub(crate) fn batched(self, values: Vec<Vec<Vec<f64>>>) -> Batched {
        Batched::new(values).looked_at(self.batching.looks)
    }

    /// Overhead per request.
    pub(crate) fn added(self, two: Two, figure: Figure) -> Batched {
        self.added_by(two, |turns| added(turns, figure))
    }

    /// Overhead per request in the windows that load each target alone within another stage.
    pub(crate) fn added_alone(self, two: Two, figure: Figure) -> Batched {
        let mut batches: Vec<Vec<f64>> = self.batching.by_batch_alone();
        for (place, block) in self.batching.places(self.blocks) {
            if let Place::Alone { batch } = place {
                let difference = turns(block, two).and_then(|turns| added(turns, figure));
                batches[batch].extend(difference);
            }
        }
        self.batched(vec![batches])
    }

    /// Values of both targets: of complete pairs if they were loaded side by side; by turns, all
    /// values of each target, because a faster one may have more.
    pub(crate) fn shift(self, two: Two, figure: Figure) -> Shift {
        self.shift_of(two, |turn| value(turn, figure), |turn| value(turn, figure))
    }

    /// Like [`Self::shift`], with any value of a turn, which a turn may lack.
    pub(crate) fn shift_of(
        self,
        two: Two,
        of_target: impl Fn(&PairedTurn) -> Option<f64>,
        of_reference: impl Fn(&PairedTurn) -> Option<f64>,
    ) -> Shift {
        let mut batches: Vec<Vec<BatchPair>> = self.batching.by_batch();
        for (place, block) in self.batching.places(self.blocks) {
            let Place::Measured { stage, batch } = place else { continue };
            let target = turn(block, two.target).and_then(&of_target);
            let reference = turn(block, two.reference).and_then(&of_reference);
            let by_turns = self.batching.stages()[stage].time.is_none();
            if by_turns || (target.is_some() && reference.is_some()) {
                batches[stage][batch].target.extend(target);
                batches[stage][batch].reference.extend(reference);
            }
        }
        Shift::new(batches).looked_at(self.batching.looks)
    }

    pub(crate) fn own(self, target: usize, figure: Figure) -> Batched {
        let values = self.batching.measured(self.blocks);
        let values = values.filter_map(|block| value(turn(block, target)?, figure)).collect();
        Batched::new(vec![vec![values]])
    }

    /// The reason for a missing interval, in words.
    pub(crate) fn words(self, why: NoIntervalReason) -> String {
        let looks = self.batching.looks;
        let needed = looks.batches_needed();
        match (why, looks) {
            (NoIntervalReason::TooFewBatches, _) if self.batching.is_by_turns() => {
                format!("too few rounds of windows: an interval needs {needed} of about equal size")
            }
            (NoIntervalReason::TooFewBatches, Looks::Always) => {
                format!("too few seconds: an always-valid interval needs {needed}")
            }
            _ => why.words(),
        }
    }

    /// The turns of one target, in measured blocks.
    pub(crate) fn turns(self, target: usize) -> impl Iterator<Item = &'a PairedTurn> {
        self.batching.measured(self.blocks).filter_map(move |block| turn(block, target))
    }
}

pub(crate) fn turn(block: &Block, target: usize) -> Option<&PairedTurn> {
    block.turns.get(target)?.as_ref()
}

fn turns(block: &Block, two: Two) -> Option<Turns<'_>> {
    Some((turn(block, two.target)?, turn(block, two.reference)?))
}

/// The time of a completed turn.
pub(crate) fn value(turn: &PairedTurn, figure: Figure) -> Option<f64> {
    if turn.outcome == Outcome::Completed { figure.of(turn) } else { None }
}

fn added(turns: Turns<'_>, figure: Figure) -> Option<f64> {
    Some(value(turns.0, figure)? - value(turns.1, figure)?)
}

/// Whether the target failed the turn: a target-side error, a timeout, or a rejection where the
/// scenario expects no decision. Turns that the generator did not send or aborted are not failures.
pub(crate) fn failed(turn: &PairedTurn) -> bool {
    match turn.outcome {
        Outcome::Completed | Outcome::Cancelled | Outcome::NeverSent => false,
        Outcome::Rejected(_) => turn.expected.is_none(),
        Outcome::Failed(class) => class.side() != Side::Generator,
        Outcome::TimedOut | Outcome::InFlight => true,
    }
}
