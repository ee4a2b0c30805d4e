//! How Redis is reached, and what happens without it.

use std::time::Duration;

/// What happens when Redis does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureMode {
    /// Requests pass uncounted; every one is counted as a store error.
    #[default]
    Open,
    /// Requests are refused with [`StoreError::Unavailable`].
    Closed,
}

/// How Redis is reached.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// `redis://HOST:PORT` or `redis://HOST:PORT/DB`.
    pub url: String,
    /// How long one operation may take. 50 ms by default.
    pub timeout: Duration,
    /// How long a budget reservation of a gateway that died is held. 10 minutes by default; longer
    /// than the longest request.
    pub lease: Duration,
    /// What all keys begin with. `plimsoll:` by default.
    pub prefix: String,
    /// What happens when Redis does not answer.
    pub on_loss: FailureMode,
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
