//! The run id, which distinguishes runs, and the seed of its requests' ids.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

use serde_with::SerializeDisplay;

use crate::rng::{Rng, Seed};

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
