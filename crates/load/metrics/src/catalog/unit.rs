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

    /// A value with three significant digits and its unit, for sentences: `300 ms`, `41.6/s`.
    pub fn value_words(self, value: f64) -> String {
        match self {
            Self::Time => format!("{} ms", three_digits(value)),
            Self::Share => format!("{} %", three_digits(value * 100.0)),
            Self::RequestsPerSecond | Self::TokensPerSecond => format!("{}/s", three_digits(value)),
            _ => three_digits(value),
        }
    }
}

fn three_digits(value: f64) -> String {
    let decimals = [100.0, 10.0, 1.0].iter().filter(|limit| value.abs() < **limit).count();
    format!("{value:.decimals$}")
}
