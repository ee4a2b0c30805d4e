//! Ids of stages, scenarios, targets and conversations, and the division of a run into parts.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_with::SerializeDisplay;

use crate::rng::{Rng, Seed};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $inner);

        impl $name {
            /// The index into the plan's list.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// Position of a stage in the plan.
    StageId(u16)
}
id! {
    /// Position of a scenario in the plan.
    ScenarioId(u16)
}
id! {
    /// Position of a target in the plan.
    TargetId(u16)
}

/// Identifies a conversation of the run. The same key and seed give the same scenario, prompts and
/// id, whichever worker or shard runs it.
///
/// Open model: the arrival's number in the schedule. Closed model: the top bit set, the virtual
/// user in the upper 32 bits and the iteration in the lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationKey(pub u64);

impl ConversationKey {
    const CLOSED: u64 = 1 << 63;

    /// The conversation that arrival number `seq` starts.
    pub const fn arrival(seq: u64) -> Self {
        Self(seq & !Self::CLOSED)
    }

    /// The `iteration`-th conversation of virtual user `vu`.
    pub const fn iteration(vu: u32, iteration: u32) -> Self {
        Self(Self::CLOSED | ((vu as u64) << 32) | iteration as u64)
    }

    /// Whether an arrival of the open model starts it.
    pub const fn is_arrival(self) -> bool {
        self.0 & Self::CLOSED == 0
    }

    /// In a comparison of `targets` targets: the conversation of this block on one of them. Open
    /// model: `block * targets + target`. Closed model: the same with the iteration.
    pub const fn on(self, target: TargetId, targets: u16) -> Self {
        let numbers = self.numbers();
        let number = (self.0 & numbers).wrapping_mul(targets as u64).wrapping_add(target.0 as u64);
        Self((self.0 & !numbers) | (number & numbers))
    }

    /// The inverse of [`ConversationKey::on`]: the block and the target. With one target, these are
    /// the key itself and the first target.
    #[must_use]
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is below the number of targets, a u16"
    )]
    pub const fn block(self, targets: u16) -> (Self, TargetId) {
        if targets <= 1 {
            return (self, TargetId(0));
        }
        let (numbers, targets) = (self.numbers(), targets as u64);
        let number = self.0 & numbers;
        (Self((self.0 & !numbers) | (number / targets)), TargetId((number % targets) as u16))
    }

    /// The number of a block in files: below 2^53 for up to two million virtual users.
    pub const fn number(self) -> u64 {
        self.0 & !Self::CLOSED
    }

    /// The key with this number, in the closed or the open model.
    #[must_use]
    pub const fn numbered(number: u64, closed: bool) -> Self {
        Self(if closed { number | Self::CLOSED } else { number & !Self::CLOSED })
    }

    /// The bits that number the arrivals, or the iterations of one virtual user.
    const fn numbers(self) -> u64 {
        if self.is_arrival() { !Self::CLOSED } else { u32::MAX as u64 }
    }
}

impl fmt::Display for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One of `count` equal parts of a whole: a shard of a run or a worker of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    index: u64,
    count: u64,
}

impl Stripe {
    /// The undivided whole.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`, counted from 0; `None` unless `index < count`.
    pub const fn new(index: u64, count: u64) -> Option<Self> {
        if index < count { Some(Self { index, count }) } else { None }
    }

    /// Position of this part, from 0.
    pub const fn index(self) -> u64 {
        self.index
    }

    /// Number of parts.
    pub const fn count(self) -> u64 {
        self.count
    }

    /// Whether item `n` of the whole belongs to this part.
    pub const fn owns(self, n: u64) -> bool {
        n % self.count == self.index
    }

    /// Part `index` of `count` of this part. All sub-parts together are exactly this part.
    pub const fn divide(self, index: u64, count: u64) -> Option<Self> {
        if index < count {
            Some(Self { index: self.index + self.count * index, count: self.count * count })
        } else {
            None
        }
    }

    /// This part's share of a limit of `total`; the shares of all parts sum to `total`.
    pub const fn share(self, total: u64) -> u64 {
        total / self.count + if self.index < total % self.count { 1 } else { 0 }
    }
}

// The run id, which distinguishes runs, and the seed of its requests' ids.

/// Identifies one execution of a plan.
///
/// The seed determines the behaviour of a run: arrivals, lengths, prompts. The run id determines
/// everything that must never repeat in another run: the ids of requests, and the text that keeps
/// prompts out of caches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, SerializeDisplay)]
pub struct RunId(String);

/// The error for an invalid run id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run id: write 1 to {max} letters, digits, `-`, `_` or `.`", max = RunId::MAX_LEN)]
pub struct ParseRunIdError(String);

impl RunId {
    /// Maximum length in bytes.
    pub const MAX_LEN: usize = 64;

    /// Creates a random one from the operating system's random numbers: 16 hexadecimal digits.
    pub fn random() -> Self {
        // The hasher is keyed with 128 random bits from the system.
        Self(format!("{:016x}", RandomState::new().hash_one(0_u8)))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = ParseRunIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=Self::MAX_LEN).contains(&text.len())
            && text.bytes().all(|byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if fits { Ok(Self(text.to_owned())) } else { Err(ParseRunIdError(text.to_owned())) }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Seed of ids and of cache-busting markers, derived from seed and run id. Two runs with the same
/// seed have different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdSeed(Seed);

impl IdSeed {
    /// The seed of the run with this id.
    pub fn new(seed: Seed, run_id: &str) -> Self {
        Self(seed.derive("run id").derive(run_id))
    }

    /// The generator for item `index` of the stream named `stream`.
    pub fn rng(self, stream: &str, index: u64) -> Rng {
        self.0.rng(stream, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_block_has_one_conversation_on_each_target(
            vu in 0u32..1 << 31, iteration in 0u32..1 << 24, seq in 0u64..1 << 58, targets in 1u16..17,
        ) {
            for block in [ConversationKey::arrival(seq), ConversationKey::iteration(vu, iteration)] {
                let keys: Vec<_> = (0..targets).map(|n| block.on(TargetId(n), targets)).collect();
                let again = ConversationKey::numbered(block.number(), !block.is_arrival());
                prop_assert_eq!(again, block);
                for (n, key) in (0..).zip(&keys) {
                    prop_assert_eq!(key.block(targets), (block, TargetId(n)));
                    prop_assert_eq!(key.is_arrival(), block.is_arrival());
                }
                // The keys are consecutive, so no other block has one of them.
                prop_assert!(keys.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
            }
        }

        #[test]
        fn every_item_belongs_to_exactly_one_sub_part(n in 0u64..100_000, shards in 1u64..9, workers in 1u64..9) {
            let owners = (0..shards)
                .flat_map(|k| (0..workers).map(move |w| (k, w)))
                .filter(|&(k, w)| {
                    Stripe::new(k, shards).and_then(|s| s.divide(w, workers)).is_some_and(|s| s.owns(n))
                })
                .count();
            prop_assert_eq!(owners, 1);
        }

        #[test]
        fn shares_add_up_to_the_total(total in 0u64..10_000, count in 1u64..64) {
            let sum: u64 = (0..count).filter_map(|i| Stripe::new(i, count)).map(|s| s.share(total)).sum();
            prop_assert_eq!(sum, total);
        }
    }
}

#[cfg(test)]
mod run_id_tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn random_run_ids_are_valid_and_differ() {
        let ids: HashSet<_> = (0..10_000).map(|_| RunId::random()).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            assert_eq!(id.as_str().len(), 16);
            assert_eq!(id.as_str().parse(), Ok(id));
        }
    }

    #[test]
    fn a_run_id_is_a_short_plain_text() {
        let longest = "x".repeat(RunId::MAX_LEN);
        for text in ["a", "nightly-2026.11_21", &longest] {
            assert_eq!(text.parse::<RunId>().unwrap().to_string(), text);
        }
        for text in ["", "a b", "a/b", "\u{e4}", "a\r\nb", &format!("{longest}x")] {
            assert_eq!(text.parse::<RunId>(), Err(ParseRunIdError(text.to_owned())));
        }
    }

    #[test]
    fn the_seed_of_ids_depends_on_seed_and_run_id() {
        let all: HashSet<_> = (0..100)
            .flat_map(|seed| ["a", "b", "ab", ""].map(|id| IdSeed::new(Seed(seed), id)))
            .collect();
        assert_eq!(all.len(), 400);
        assert_eq!(IdSeed::new(Seed(3), "x"), IdSeed::new(Seed(3), "x"));
    }
}
