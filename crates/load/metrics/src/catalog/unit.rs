//! The units of the catalog.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A length of time: nanoseconds inside, milliseconds in JSON and CSV, seconds in Prometheus.
    Time,
    /// A share of a whole, from 0 to 1.
    Share,
    /// Requests per second.
    RequestsPerSecond,
    /// Tokens per second.
    TokensPerSecond,
    /// Requests.
    Requests,
    /// Tokens.
    Tokens,
    /// Bytes.
    Bytes,
    /// Content events of streams.
    Events,
    /// Connections.
    Connections,
}

impl Unit {
    /// The suffix of a JSON key or CSV column of this unit.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Time => "_ms",
            Self::RequestsPerSecond | Self::TokensPerSecond => "_per_s",
            _ => "",
        }
    }

    /// Its name in the reference page and in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Share => "share (0 to 1)",
            Self::RequestsPerSecond => "requests/s",
            Self::TokensPerSecond => "tokens/s",
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Bytes => "bytes",
            Self::Events => "events",
            Self::Connections => "connections",
        }
    }
}
