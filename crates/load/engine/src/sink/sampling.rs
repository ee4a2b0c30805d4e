//! Which turns are written when the writer cannot keep up.

use plimsoll_measure::{ConversationKey, IdSeed, Sample};
use plimsoll_workload::id_rank;

/// Batches that may wait for the writer: at 100,000 samples/s this is more than half a second.
pub(super) const MAX_WAITING: usize = 256;
/// Batches that may wait before fewer rows are written: half of them.
const FULL_RATE_BACKLOG: usize = MAX_WAITING / 2;
/// Batches by which the backlog grows until the rate is halved once more.
const STEP: usize = (MAX_WAITING - FULL_RATE_BACKLOG) / MAX_HALVINGS as usize;
/// Halvings at most: one conversation in 4,096.
const MAX_HALVINGS: u32 = 12;
/// Halvings that do not apply to turns with an unexpected end: these are few, or their number is
/// the finding.
const UNEXPECTED_EXEMPT: u32 = 6;

/// The part of the turns that is written, by a rule that does not depend on the measurements.
///
/// A turn is kept if its conversation's id, read as a fraction of the range of ids, is below the
/// rate. Conversations are therefore kept whole, a lower rate keeps a subset of a higher one, and
/// the id alone decides. Rates are 1, 1/2, 1/4 and so on down to 1/4096. A turn with an unexpected
/// end ([`Sample::is_unexpected`]) is kept with 64 times the rate of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplingRate {
    /// The rate is one in two to the power of this.
    halvings: u32,
}

impl SamplingRate {
    /// Everything is written.
    pub const FULL: Self = Self { halvings: 0 };

    /// The rate while so many batches wait for the writer. It falls so fast that the channel does
    /// not fill up as long as the writer writes at all.
    pub(super) fn for_backlog(waiting: usize) -> Self {
        let steps = waiting.checked_sub(FULL_RATE_BACKLOG).map_or(0, |beyond| beyond / STEP + 1);
        Self { halvings: u32::try_from(steps).unwrap_or(MAX_HALVINGS).min(MAX_HALVINGS) }
    }

    /// N, where one conversation in N is kept.
    pub const fn one_in(self) -> u32 {
        1 << self.halvings
    }

    /// The number of turns that a written turn represents: the inverse of the probability that one
    /// like it is kept. Sums with these weights are unbiased estimates over all turns (Horvitz and
    /// Thompson, 1952).
    pub fn weight(self, sample: &Sample) -> u32 {
        1 << self.halvings_for(sample)
    }

    /// Whether a turn is written.
    pub(super) fn keeps(self, ids: IdSeed, sample: &Sample) -> bool {
        is_kept(self.halvings_for(sample), ids, sample.conversation)
    }

    /// Whether the turns of a conversation are written that end as expected.
    pub(super) fn keeps_conversation(self, ids: IdSeed, conversation: ConversationKey) -> bool {
        is_kept(self.halvings, ids, conversation)
    }

    fn halvings_for(self, sample: &Sample) -> u32 {
        if self.halvings > 0 && sample.is_unexpected() {
            self.halvings.saturating_sub(UNEXPECTED_EXEMPT)
        } else {
            self.halvings
        }
    }
}

fn is_kept(halvings: u32, ids: IdSeed, conversation: ConversationKey) -> bool {
    halvings == 0 || id_rank(ids, conversation) >> (u32::BITS - halvings) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_as_the_backlog_grows_and_recovers_with_it() {
        let one_in: Vec<_> =
            (0..=MAX_WAITING).map(|waiting| SamplingRate::for_backlog(waiting).one_in()).collect();
        assert!(one_in.is_sorted());
        assert_eq!((one_in[0], one_in[127], one_in[128], one_in[138]), (1, 1, 2, 4));
        assert_eq!(one_in.last(), Some(&4_096));
    }
}
