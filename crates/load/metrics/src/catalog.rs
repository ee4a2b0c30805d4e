//! The catalog of metrics: the only place for names, titles, units and definitions.
//!
//! It has three parts:
//!
//! - [`Metric`]: distributions of times, one value (or, for gaps, several) per request
//! - [`Counters`]: whole numbers that add up over requests, workers and shards
//! - [`Rates`]: figures derived from counters and the length of the stage
//!
//! Reports, CSV header, Prometheus names, thresholds and the reference page are made from it.

pub use counters::{COUNTERS, CounterSpec, Counters};
pub use metric::{Disturbance, Metric, Population, Unit};
use plimsoll_measure::Side;
use plimsoll_stats::runs::Worse;
pub use rates::{RATES, RateSpec, Rates};

use crate::bounded_figure::Bias;

mod counters;
mod metric;
mod rates;

/// Shares that fall with every request without a good answer.
const SHARES_OF_ANSWERS: [&str; 3] = ["success_rate", "good_share", "block_rate"];
/// Shares of decided requests; unanswered requests do not lower them.
const SHARES_OF_DECISIONS: [&str; 2] = ["policy_correctness", "resumption_rate"];
/// Shares that rise with every request that fails, is refused for the load, or is never sent.
const SHARES_OF_FAILURES: [&str; 7] = [
    "reject_rate",
    "failure_rate",
    "timeout_rate",
    "unfinished_rate",
    "unsent_rate",
    "error_rate",
    "error_rate_excluding_rejected",
];

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

    /// Finds a figure by its name.
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

    /// How other load on the hosts can change it.
    pub fn disturbance(self) -> Disturbance {
        match (self, self.unit()) {
            (Self::Distribution(metric), _) => metric.disturbance(),
            (_, Unit::RequestsPerSecond | Unit::TokensPerSecond) => Disturbance::Down,
            _ if SHARES_OF_FAILURES.contains(&self.name()) => Disturbance::Up,
            _ if SHARES_OF_ANSWERS.contains(&self.name()) => Disturbance::Down,
            _ => Disturbance::None,
        }
    }

    /// Direction in which the generator can change it.
    pub const fn bias(self) -> Bias {
        match self {
            Self::Distribution(metric) if metric.is_gap() => Bias::Both,
            Self::Distribution(_) => Bias::Adds,
            _ => Bias::Takes,
        }
    }

    /// The direction in which it gets worse.
    pub fn worse(self) -> Worse {
        match self.unit() {
            Unit::RequestsPerSecond | Unit::TokensPerSecond => Worse::Lower,
            Unit::Share if SHARES_OF_ANSWERS.contains(&self.name()) => Worse::Lower,
            Unit::Share if SHARES_OF_DECISIONS.contains(&self.name()) => Worse::Lower,
            _ => Worse::Higher,
        }
    }

    /// Its unit.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Distribution(_) => Unit::Time,
            Self::Counter(counter) => counter.unit,
            Self::Rate(rate) => rate.unit,
        }
    }
}

/// The name of a side in every report.
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
