//! The one table of metrics: every name, title, unit and definition is written here and nowhere else.
//!
//! It has three parts, by how a figure comes about:
//!
//! - [`Metric`]: distributions of times, one value (or, for gaps, several) per request
//! - [`Counters`]: whole numbers that add up over requests, workers and shards
//! - [`Rates`]: figures derived from counters and the length of the stage
//!
//! The reports, the CSV header, the Prometheus names, the thresholds and the reference page read it.

use plimsoll_measure::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod counters;
mod metric;
mod rates;
mod reference;

pub use counters::{COUNTERS, CounterSpec, Counters};
pub use metric::{Metric, Population};
pub use rates::{RATES, RateSpec, Rates};
pub use reference::reference;

/// What a figure is measured in.
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
    /// What a JSON key or CSV column of this unit ends in.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Time => "_ms",
            Self::RequestsPerSecond | Self::TokensPerSecond => "_per_s",
            _ => "",
        }
    }

    /// The word in the reference page and in messages.
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

/// One figure of the table.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    /// A distribution.
    Distribution(Metric),
    /// A counter.
    Counter(&'static CounterSpec),
    /// A rate or a share.
    Rate(&'static RateSpec),
}

impl Figure {
    /// Every figure, in the order of the reports.
    pub fn all() -> impl Iterator<Item = Self> {
        let distributions = Metric::ALL.into_iter().map(Self::Distribution);
        distributions.chain(COUNTERS.iter().map(Self::Counter)).chain(RATES.iter().map(Self::Rate))
    }

    /// The figure of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|figure| figure.name() == name)
    }

    /// The name in thresholds.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Distribution(metric) => metric.name(),
            Self::Counter(counter) => counter.name,
            Self::Rate(rate) => rate.name,
        }
    }

    /// What it is measured in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Distribution(_) => Unit::Time,
            Self::Counter(counter) => counter.unit,
            Self::Rate(rate) => rate.unit,
        }
    }
}

/// The word for a side in every report.
pub const fn side_word(side: Side) -> &'static str {
    match side {
        Side::Generator => "generator",
        Side::Network => "network",
        Side::Target => "target",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_snake_case() {
        let names: Vec<_> = Figure::all().map(Figure::name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for name in names {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert_eq!(Figure::named(name).map(Figure::name), Some(name));
        }
    }

    #[test]
    fn keys_of_rates_carry_their_unit() {
        for rate in &RATES {
            assert_eq!(rate.key, format!("{}{}", rate.name, rate.unit.suffix()));
        }
    }
}
