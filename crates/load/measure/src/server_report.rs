//! Times and states that the target reports in its response headers.

use crate::named_enum;
use serde::{Deserialize, Serialize};

use crate::time::Nanos;

named_enum! {
    /// Whether a cache answered, according to the response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CacheState {
        /// A cache answered, possibly with a stale response.
        Hit => "hit",
        /// A cache did not have the response.
        Miss => "miss",
        /// The cache was bypassed or disabled, or the response is not cacheable.
        Bypass => "bypass",
    }
}

impl CacheState {
    /// The state by the words that caches use: `HIT`, `TCP_MEM_HIT`, `Miss from cloudfront`,
    /// `semantic hit`, and `NAME; fwd=miss` (RFC 9211); `None` without any of these words.
    pub fn from_words(value: &[u8]) -> Option<Self> {
        // Stale and revalidated responses come from the cache too.
        if says(value, &["hit", "stale", "updating", "revalidated"]) || is(value, &["true", "1"]) {
            Some(Self::Hit)
        } else if says(value, &["miss", "expired", "refresh"]) || is(value, &["false", "0"]) {
            Some(Self::Miss)
        } else {
            let words = ["bypass", "dynamic", "disabled", "pass", "uncacheable", "fwd", "none"];
            says(value, &words).then_some(Self::Bypass)
        }
    }
}

fn is(value: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

fn says(value: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| has_word(value, word))
}

/// Whether a value includes this word: `hit` is not in `white`.
fn has_word(value: &[u8], word: &str) -> bool {
    value.windows(word.len()).enumerate().any(|(at, part)| {
        let next = value.get(at + word.len());
        part.eq_ignore_ascii_case(word.as_bytes()) && !next.is_some_and(u8::is_ascii_alphabetic)
    })
}

/// Content of a response's headers. Plimsoll did not measure it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Cache state; `None` if not reported.
    pub cache: Option<CacheState>,
    /// Number of retries by the target to its own upstream; 0 also if not reported.
    pub retries: u32,
    /// Duration reported by the target.
    pub time: Option<Nanos>,
    /// Whether the client should wait before the next request (`Retry-After`).
    pub retry_after: bool,
}

/// Number of part names that are distinguished in a run.
pub const NAMED_PARTS: usize = 8;
/// Name of all further parts.
pub const OTHER_PARTS: &str = "other";

/// Times of parts, by the index of their name in the run; the last one is for all further names.
pub type PartTimes = [Option<Nanos>; NAMED_PARTS + 1];

/// Parts of its time that a target reports in its response headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerParts {
    /// As reported.
    Told(PartTimes),
    /// Impossible: an invalid time or name, or a sum above the time that they are parts of.
    Refused,
}

impl ServerParts {
    /// Rejects the parts if their sum exceeds the whole, or if the whole is unknown.
    pub fn within(self, whole: Option<Nanos>) -> Self {
        match self {
            Self::Told(times) if whole.is_some_and(|whole| sum(&times) <= whole) => self,
            _ => Self::Refused,
        }
    }

    /// The times; `None` if they are rejected.
    pub const fn times(&self) -> Option<&PartTimes> {
        match self {
            Self::Told(times) => Some(times),
            Self::Refused => None,
        }
    }
}

fn sum(times: &PartTimes) -> Nanos {
    times.iter().flatten().copied().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_refused_and_never_cut_where_they_exceed_the_whole() {
        let mut times = PartTimes::default();
        (times[0], times[NAMED_PARTS]) = (Some(Nanos::new(30)), Some(Nanos::new(12)));
        let parts = ServerParts::Told(times);
        assert_eq!(parts.within(Some(Nanos::new(42))), parts);
        assert_eq!(parts.within(Some(Nanos::new(41))), ServerParts::Refused);
        assert_eq!(parts.within(None), ServerParts::Refused);
        assert_eq!(ServerParts::Refused.within(Some(Nanos::new(42))).times(), None);
    }
}
