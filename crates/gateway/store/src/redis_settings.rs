//! Settings of the Redis store, and its failure mode.

use std::time::Duration;

/// The behaviour when Redis does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FailureMode {
    /// requests pass
    #[default]
    Open,
    /// requests are refused with 503
    Closed,
}

/// Settings of the Redis store.
#[derive(Clone)]
pub struct RedisSettings {
    /// `redis://HOST:PORT` or `redis://HOST:PORT/DB`.
    pub url: String,
    /// Time limit of one operation; 50 ms by default.
    pub timeout: Duration,
    /// Lifetime of a budget reservation whose gateway died; 10 minutes by default. Must be longer
    /// than the longest request.
    pub lease: Duration,
    /// Prefix of all keys; `plimsoll:` by default.
    pub prefix: String,
    /// The behaviour when Redis does not answer.
    pub on_loss: FailureMode,
}

impl std::fmt::Debug for RedisSettings {
    /// Omits the address, which may contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSettings").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisSettings {
    /// The defaults for an address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            timeout: Duration::from_millis(50),
            lease: Duration::from_mins(10),
            prefix: "plimsoll:".to_owned(),
            on_loss: FailureMode::default(),
        }
    }
}
