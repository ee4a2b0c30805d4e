//! Which turns are written when the writer cannot keep up.

use plimsoll_measure::{Sample, Seed};
use plimsoll_workload::id_rank;

/// Batches that may wait before fewer are sent: half of the room.
const BEGIN: usize = super::WAITING / 2;
/// Batches by which the backlog grows until the share is halved once more.
const STEP: usize = super::WAITING / 2 / LEVELS as usize;
/// Halvings at most: one conversation in 4,096.
const LEVELS: u32 = 12;
/// Halvings that turns with an unexpected end are spared: they are few, or their large number is what the run says.
const SPARED: u32 = 6;

/// The share of the turns that is written, by a rule that does not look at what was measured.
///
/// A turn is kept if its conversation's id, read as a fraction of the range of ids, is below the share: so
/// conversations are kept whole, the ones of a small share are among those of every larger one, and anybody can tell
/// from an id what is kept. Shares are 1, 1/2, 1/4 and so on down to 1/4096. A turn that did not end as it should
/// ([`Sample::is_unexpected`]) is kept with 64 times the share of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How often it was halved.
    level: u32,
}

impl Share {
    /// Everything is written.
    pub const WHOLE: Self = Self { level: 0 };

    /// The share while so many batches wait for the writer: what is kept then passes before the room is used up, as
    /// long as the writer writes at all.
    pub(super) fn under(waiting: usize) -> Self {
        let steps = waiting.checked_sub(BEGIN).map_or(0, |beyond| beyond / STEP + 1);
        Self { level: u32::try_from(steps).unwrap_or(LEVELS).min(LEVELS) }
    }

    /// One conversation in so many is kept.
    pub const fn one_in(self) -> u32 {
        1 << self.level
    }

    /// How many turns a turn stands for if it is written: the inverse of the probability with which one like it is
    /// kept. Sums that are weighted with it estimate those of all turns without bias (Horvitz and Thompson, 1952).
    pub fn weight(self, sample: &Sample) -> u32 {
        1 << self.level_for(sample)
    }

    /// Is a turn written?
    pub(super) fn keeps(self, seed: Seed, sample: &Sample) -> bool {
        let level = self.level_for(sample);
        level == 0 || id_rank(seed, sample.conversation) >> (u32::BITS - level) == 0
    }

    fn level_for(self, sample: &Sample) -> u32 {
        if self.level > 0 && sample.is_unexpected() {
            self.level.saturating_sub(SPARED)
        } else {
            self.level
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_falls_as_the_backlog_grows_and_recovers_with_it() {
        let shares: Vec<_> =
            (0..=super::super::WAITING).map(|waiting| Share::under(waiting).one_in()).collect();
        assert!(shares.is_sorted());
        assert_eq!((shares[0], shares[127], shares[128], shares[138]), (1, 1, 2, 4));
        assert_eq!(shares.last(), Some(&4_096));
    }
}
