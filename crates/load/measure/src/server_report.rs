//! What the target says of itself in the headers of a response.

use crate::named_enum;
use serde::{Deserialize, Serialize};

use crate::time::Nanos;

named_enum! {
    /// Whether a cache answered, as the response says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CacheState {
        /// A cache answered, also with a stale response.
        Hit => "hit",
        /// A cache was asked and did not have it.
        Miss => "miss",
        /// No cache was asked: bypassed, disabled, not cacheable.
        Bypass => "bypass",
    }
}

impl CacheState {
    /// The state by the words that caches use: `HIT`, `TCP_MEM_HIT`, `Miss from cloudfront`,
    /// `semantic hit`, and `NAME; fwd=miss` (RFC 9211); `None` if there is none of them.
    pub fn from_words(value: &[u8]) -> Option<Self> {
        // Stale and revalidated responses come from the cache, too.
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

/// Whether a value has a word that ends there: `hit` is not in `white`.
fn has_word(value: &[u8], word: &str) -> bool {
    value.windows(word.len()).enumerate().any(|(at, part)| {
        let next = value.get(at + word.len());
        part.eq_ignore_ascii_case(word.as_bytes()) && !next.is_some_and(u8::is_ascii_alphabetic)
    })
}

/// What the headers of a response say. None of it is measured by Plimsoll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Whether a cache answered; `None` if the response does not say.
    pub cache: Option<CacheState>,
    /// How often the target asked its own upstream again; 0 also if it does not say.
    pub retries: u32,
    /// How long the target says it took.
    pub time: Option<Nanos>,
    /// Whether it asks to wait before the next request (`Retry-After`).
    pub retry_after: bool,
}

/// Names of parts that are told apart in a run.
pub const NAMED_PARTS: usize = 8;
/// The name of all further parts.
pub const OTHER_PARTS: &str = "other";

/// Times of parts, by the number of their name in the run; the last is of all further names.
pub type PartTimes = [Option<Nanos>; NAMED_PARTS + 1];

/// The parts of its time that a target states in the headers of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerParts {
    /// As the header says.
    Told(PartTimes),
    /// They cannot be true: a time that is no number, a name that is none, or together more than
    /// the time that they are parts of.
    Refused,
}

impl ServerParts {
    /// The same, refused if the parts are together longer than the whole, or if that is not known.
    #[must_use]
    pub fn within(self, whole: Option<Nanos>) -> Self {
        match self {
            Self::Told(times) if whole.is_some_and(|whole| sum(&times) <= whole) => self,
            _ => Self::Refused,
        }
    }

    /// The times; `None` if they are refused.
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
