//! The results of one group of requests.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounting::Accounting;
use crate::catalog::{Counters, Metric, Rates};
use crate::cell::GroupStats;
use crate::confidence::{Interval, NoIntervalReason};
use crate::confusion::Matrix;
use crate::distribution::{Distribution, Exact};
use crate::error::MetricsError;
use crate::quantile::{QUANTILES, Quantile};

/// The results of one group of requests: a cell, a stage, a scenario, a target, or the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its stage, where it is about one.
    pub stage: Option<String>,
    /// Its scenario, where it is about one.
    pub scenario: Option<String>,
    /// Its target, where it is about one.
    #[serde(alias = "lane")]
    pub target: Option<String>,
    /// Its category of scenarios, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Is it about a warm-up stage?
    pub warmup: bool,
    /// How long its stages lasted together, in seconds.
    pub duration_s: f64,
    /// Counters.
    pub counters: Counters,
    /// Rates and shares.
    pub rates: Rates,
    /// Failures by error class.
    pub errors: BTreeMap<String, u64>,
    /// Answers by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests by expected and by actual policy decision, where policy decisions are expected; `unanswered` got none.
    #[serde(default, alias = "verdicts", skip_serializing_if = "BTreeMap::is_empty")]
    pub policy_decisions: Matrix,
    /// Distributions by [`Metric::key`], in milliseconds; those without a value are left out.
    pub distributions: BTreeMap<String, DistributionSummary>,
}

impl Group {
    /// The results of a cell, or of several added up, without labels.
    pub(super) fn of(cell: &GroupStats, duration_s: f64) -> Result<Self, MetricsError> {
        let mut distributions = BTreeMap::new();
        for metric in Metric::ALL {
            if let Some(distribution) = cell.distribution(metric) {
                distributions
                    .insert(metric.key().to_owned(), DistributionSummary::of(distribution)?);
            }
        }
        Ok(Self {
            duration_s,
            counters: *cell.counters(),
            rates: Rates::of(cell.counters(), duration_s),
            errors: cell.errors().iter().map(|(c, n)| (c.name().to_owned(), *n)).collect(),
            statuses: cell.statuses().clone(),
            policy_decisions: cell.policy_decisions().matrix(),
            distributions,
            ..Self::default()
        })
    }

    /// The terms of the accounting identity.
    pub fn accounting(&self) -> Accounting {
        Accounting::from(&self.counters)
    }

    /// A distribution; `None` where it has no value.
    pub fn distribution(&self, metric: Metric) -> Option<&DistributionSummary> {
        self.distributions.get(metric.key())
    }
}

/// A distribution of times, in milliseconds. A percentile is `null` where there are too few samples
/// for it (see [`crate::samples_needed`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DistributionSummary {
    /// Number of values.
    pub count: u64,
    /// Exact sum.
    pub sum: f64,
    /// Exact mean.
    pub mean: f64,
    /// Exact smallest value.
    pub min: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// Exact largest value.
    pub max: f64,
    /// 95 % confidence intervals by [`Quantile::key`], which allow for autocorrelation; of the metrics
    /// in [`crate::WITH_INTERVALS`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ci: BTreeMap<String, Interval>,
    /// Why a percentile that is given has no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_note: Option<String>,
    /// HDR histogram in nanoseconds: V2 encoding, deflated, base64.
    pub histogram: String,
}

const NANOS_PER_MILLI: f64 = 1e6;

impl DistributionSummary {
    fn of(distribution: &Distribution) -> Result<Self, MetricsError> {
        let exact = |value: Option<Nanos>| value.map_or(0.0, Nanos::as_millis_f64);
        let quantile = |q| distribution.quantile(q).map(Nanos::as_millis_f64);
        let sum = distribution.sum() as f64 / NANOS_PER_MILLI;
        Ok(Self {
            count: distribution.count(),
            sum,
            mean: sum / distribution.count().max(1) as f64,
            min: exact(distribution.min()),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max: exact(distribution.max()),
            histogram: distribution.encode()?,
            ..Self::default()
        })
    }

    /// The confidence interval of a percentile; `None` where there is none.
    pub fn interval(&self, quantile: &Quantile) -> Option<&Interval> {
        self.ci.get(quantile.key)
    }

    /// Puts an interval beside every percentile that is given, or says why not.
    pub(super) fn bound(&mut self, interval: impl Fn(f64) -> Result<Interval, NoIntervalReason>) {
        for quantile in &QUANTILES {
            match (quantile.of)(self).map(|_| interval(quantile.q)) {
                None => {}
                Some(Ok(interval)) => drop(self.ci.insert(quantile.key.to_owned(), interval)),
                Some(Err(doubt)) => {
                    let why = || format!("{}: {}", quantile.label, doubt.words());
                    self.ci_note.get_or_insert_with(why);
                }
            }
        }
    }

    /// The distribution that this is a summary of, bucket by bucket.
    ///
    /// # Errors
    /// [`MetricsError::DecodeHistogram`] where the histogram was damaged.
    pub fn restore(&self) -> Result<Distribution, MetricsError> {
        let exact =
            Exact { sum: nanos(self.sum).into(), min: nanos(self.min), max: nanos(self.max) };
        Distribution::decode(&self.histogram, &exact)
    }
}

fn nanos(millis: f64) -> u64 {
    Nanos::from_secs_f64(millis / 1e3).as_u64()
}
