//! The arrivals of a comparison on one of its targets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::{FusedIterator, Peekable};
use std::sync::Arc;

use plimsoll_measure::{ConversationKey, Nanos, Stripe, TargetId};

use super::layout::Segment;
use super::{Group, PairSchedule};
use crate::arrivals::{Arrival, ArrivalIter};

/// The arrivals on one target for the blocks of one stripe, in chronological order.
///
/// Neighbouring blocks may overlap if they are not evenly spaced, so a few arrivals wait here until
/// no earlier one can follow.
#[derive(Clone, Debug)]
pub struct PairedArrivals {
    schedule: PairSchedule,
    target: TargetId,
    blocks: Peekable<ArrivalIter>,
    /// Ordered by intended start, then by number.
    waiting: BinaryHeap<Reverse<ByTime>>,
    /// The orders of the last group of blocks, and its number.
    group: Option<(u64, Group)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByTime(Arrival);

impl PairedArrivals {
    pub(super) fn new(schedule: PairSchedule, stripe: Stripe, target: TargetId) -> Self {
        let blocks = ArrivalIter::new(Arc::clone(&schedule.0.axis), stripe).peekable();
        Self { schedule, target, blocks, waiting: BinaryHeap::new(), group: None }
    }

    /// The arrival of a block on this target; `None` if the block does not fit into its segment.
    fn of_block(&mut self, block: Arrival) -> Option<Arrival> {
        let segment = *self.schedule.0.layout.segment_on_axis(block.at)?;
        let at = self.window_start(&segment) + block.at.saturating_sub(segment.from);
        let key = ConversationKey::arrival(block.seq).on(self.target, self.schedule.targets());
        let own = Arrival { seq: key.0, at, ..block };
        if segment.windows.is_some() {
            return Some(own);
        }
        // A block must end where it begins: in the same stage, and not next to a window.
        let gap = segment.gap.as_u64();
        let length = gap.saturating_mul(u64::from(self.schedule.targets()) - 1);
        let own_place = gap.saturating_mul(self.place(block.seq).into());
        let fits = at + Nanos::new(length) < segment.end;
        fits.then(|| Arrival { at: at + Nanos::new(own_place), ..own })
    }

    /// The start of this target's window in a round, or of the segment.
    fn window_start(&mut self, segment: &Segment) -> Nanos {
        let Some(windows) = segment.windows else { return segment.start };
        let place = self.place(windows.round.into());
        segment.start + Nanos::new(windows.length.as_u64().saturating_mul(place.into()))
    }

    fn place(&mut self, block: u64) -> u8 {
        let orders = &self.schedule.0.orders;
        let (number, row) = (block / orders.group_size(), block % orders.group_size());
        match &self.group {
            Some((known, group)) if *known == number => group.place(row, self.target),
            _ => {
                let group = orders.group(number);
                let place = group.place(row, self.target);
                self.group = Some((number, group));
                place
            }
        }
    }

    /// Lower bound of all arrivals still to come.
    fn bound(&mut self) -> Option<Nanos> {
        let block = *self.blocks.peek()?;
        let segment = *self.schedule.0.layout.segment_on_axis(block.at)?;
        Some(self.window_start(&segment) + block.at.saturating_sub(segment.from))
    }
}

impl Iterator for PairedArrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let bound = self.bound();
            let first = self.waiting.peek().map(|Reverse(ByTime(first))| first.at);
            if first.is_some_and(|first| bound.is_none_or(|bound| first <= bound)) {
                return self.waiting.pop().map(|Reverse(ByTime(first))| first);
            }
            let block = self.blocks.next()?;
            let arrival = self.of_block(block);
            self.waiting.extend(arrival.map(|arrival| Reverse(ByTime(arrival))));
        }
    }
}

impl FusedIterator for PairedArrivals {}

impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.at, self.0.seq).cmp(&(other.0.at, other.0.seq))
    }
}
