//! The figures of one distribution, as `summary.json` holds them.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::confidence::{Interval, NoIntervalReason};
use crate::distribution::{Distribution, ExactFigures};
use crate::error::MetricsError;
use crate::quantile::{QUANTILES, Quantile};

/// A distribution of times, in milliseconds. A percentile is `null` if there are too few samples
/// for it: fewer than 10 beyond it.
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
    /// 95 % confidence intervals by percentile, like `p99`, which allow for autocorrelation; only
    /// for some metrics.
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
    pub(super) fn of(distribution: &Distribution) -> Result<Self, MetricsError> {
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

    /// One of [`QUANTILES`], in milliseconds; `None` if there are too few samples for it.
    pub fn quantile(&self, quantile: &Quantile) -> Option<f64> {
        match quantile.key {
            "p50" => self.p50,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p99_9" => self.p99_9,
            _ => None,
        }
    }

    /// The confidence interval of a percentile; `None` if there is none.
    pub fn interval(&self, quantile: &Quantile) -> Option<&Interval> {
        self.ci.get(quantile.key)
    }

    /// Adds an interval to every percentile that is given, or the reason why there is none.
    pub(super) fn add_intervals(
        &mut self,
        interval: impl Fn(f64) -> Result<Interval, NoIntervalReason>,
    ) {
        for quantile in &QUANTILES {
            match self.quantile(quantile).map(|_| interval(quantile.q)) {
                None => {}
                Some(Ok(interval)) => drop(self.ci.insert(quantile.key.to_owned(), interval)),
                Some(Err(reason)) => {
                    let why = || format!("{}: {}", quantile.label, reason.words());
                    self.ci_note.get_or_insert_with(why);
                }
            }
        }
    }

    /// The distribution that was summed up, bucket by bucket.
    ///
    /// # Errors
    /// [`MetricsError::DecodeHistogram`] if the histogram was damaged.
    pub fn restore(&self) -> Result<Distribution, MetricsError> {
        let exact = ExactFigures {
            sum: nanos(self.sum).into(),
            min: nanos(self.min),
            max: nanos(self.max),
        };
        Distribution::decode(&self.histogram, &exact)
    }
}

fn nanos(millis: f64) -> u64 {
    Nanos::from_secs_f64(millis / 1e3).as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantile_of_the_table_has_its_value() {
        let summary = DistributionSummary {
            p50: Some(50.0),
            p90: Some(90.0),
            p95: Some(95.0),
            p99: Some(99.0),
            p99_9: Some(99.9),
            ..DistributionSummary::default()
        };
        for quantile in &QUANTILES {
            let value = summary.quantile(quantile).map(|value| value / 100.0);
            assert!(value.is_some_and(|value| (value - quantile.q).abs() < 1e-9), "{quantile:?}");
        }
    }
}
