//! When requests were due and when they were sent, to the second.

use plimsoll_measure::{Moment, Timeline};

/// Seconds of a run with a count each, in the order in which they first came.
///
/// A worker counts the requests of one interval: mostly they began in one or two seconds, and the
/// last of them is looked at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecondCounts(Vec<(u32, u32)>);

/// The starts of the requests of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Starts {
    /// By the second of their intended start.
    pub(crate) due: SecondCounts,
    /// By the second in which they were dispatched; those that never were are left out.
    pub(crate) sent: SecondCounts,
    /// By the tenth of a second in which they ended.
    pub(crate) ended: SecondCounts,
}

impl Starts {
    /// Counts a request of a run that began at `origin`.
    #[inline]
    pub(crate) fn count(&mut self, timeline: &Timeline, origin: Moment) {
        self.due.add(second(timeline.intended, origin), 1);
        if let Some(dispatched) = timeline.dispatched {
            self.sent.add(second(dispatched, origin), 1);
        }
        if let Some(finished) = timeline.finished {
            self.ended.add(part(finished, origin, 100_000_000), 1);
        }
    }

    /// Adds those of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.due.iter().for_each(|(second, n)| self.due.add(second, n));
        other.sent.iter().for_each(|(second, n)| self.sent.add(second, n));
        other.ended.iter().for_each(|(tenth, n)| self.ended.add(tenth, n));
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl SecondCounts {
    #[inline]
    fn add(&mut self, second: u32, count: u32) {
        match self.0.iter_mut().rev().find(|(known, _)| *known == second) {
            Some((_, n)) => *n = n.saturating_add(count),
            None => self.0.push((second, count)),
        }
    }

    /// Each second with its count.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }
}

/// The whole seconds between two moments.
#[inline]
fn second(at: Moment, origin: Moment) -> u32 {
    part(at, origin, 1_000_000_000)
}

/// The whole parts of `nanos` between two moments.
#[inline]
fn part(at: Moment, origin: Moment, nanos: u64) -> u32 {
    u32::try_from(at.since(origin).as_u64() / nanos).unwrap_or(u32::MAX)
}
