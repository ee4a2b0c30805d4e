//! Token counts, each with its source.

use crate::named_enum;
use serde::{Deserialize, Serialize};

named_enum! {
    /// Where a token count comes from. Counts of different sources are never added up silently.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TokenSource {
        /// Neither reported nor counted.
        #[default]
        Unknown => "unknown",
        /// The target's own usage report.
        Reported => "reported",
        /// Counted content events of a stream (output) or estimated from the text (input).
        Estimated => "estimated",
    }
}

/// A number of tokens, with its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// Number of tokens; 0 where the source is [`TokenSource::Unknown`].
    pub count: u32,
    /// Where the number comes from.
    pub source: TokenSource,
}

impl TokenCount {
    /// A count from the target's usage report.
    pub const fn reported(count: u32) -> Self {
        Self { count, source: TokenSource::Reported }
    }

    /// A count of our own.
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
    /// Output tokens, including reasoning if the target counts it in.
    pub completion: TokenCount,
    /// Input tokens that the target read from its prompt cache (reported, else 0).
    pub cached: u32,
    /// Output tokens spent on reasoning (reported, else 0).
    pub reasoning: u32,
    /// Output tokens after the first content event of a stream. If the reasoning is hidden or
    /// summarised: those of the answer after its own first event. 0 if the target paused between
    /// them, for a search of its own. `None` if the usage does not separate the tokens that were
    /// sent.
    pub after_first: Option<u32>,
}
