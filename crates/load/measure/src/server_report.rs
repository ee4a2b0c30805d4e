//! What the target says of itself in the headers of a response.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;

/// Whether a cache answered, as the response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// A cache answered, also with a stale response.
    Hit,
    /// A cache was asked and did not have it.
    Miss,
    /// No cache was asked: bypassed, disabled, not cacheable.
    Bypass,
}

impl CacheState {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Bypass => "bypass",
        }
    }
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
}
