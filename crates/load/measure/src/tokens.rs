//! Token counts, each with its source.

use crate::named_enum;
use serde::{Deserialize, Serialize};

named_enum! {
    /// Source of a token count. Counts of different sources are never added silently.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TokenSource {
        /// Neither reported nor counted.
        #[default]
        Unknown => "unknown",
        /// The target's own usage report.
        Reported => "reported",
        /// Counted content events of a stream (output), or an estimate from the text (input).
        Estimated => "estimated",
    }
}

/// A number of tokens, with its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// Number of tokens; 0 if the source is [`TokenSource::Unknown`].
    pub count: u32,
    /// Source of the number.
    pub source: TokenSource,
}

impl TokenCount {
    /// A count reported by the target.
    pub const fn reported(count: u32) -> Self {
        Self { count, source: TokenSource::Reported }
    }

    /// A count estimated by Plimsoll.
    pub const fn estimated(count: u32) -> Self {
        Self { count, source: TokenSource::Estimated }
    }

    /// The count, if known.
    pub const fn known(self) -> Option<u32> {
        match self.source {
            TokenSource::Unknown => None,
            TokenSource::Reported | TokenSource::Estimated => Some(self.count),
        }
    }
}

/// Tokens of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens.
    pub prompt: TokenCount,
    /// Output tokens, including reasoning if the target includes it.
    pub completion: TokenCount,
    /// Input tokens that the target read from its prompt cache, if reported; otherwise 0.
    pub cached: u32,
    /// Output tokens used for reasoning, if reported; otherwise 0.
    pub reasoning: u32,
    /// Output tokens after the first content event of a stream. If the reasoning is hidden or
    /// summarized, only tokens of the answer after its own first event. 0 if the target paused
    /// between them, for example for a search. `None` if the usage does not separate the sent
    /// tokens.
    pub after_first: Option<u32>,
}
