//! 95 % confidence intervals of percentiles, which allow for autocorrelation.
//!
//! `docs/statistics.md` explains the method for a reader without statistics, with formulas and
//! sources; `docs/adr/0002-confidence-intervals.md` says what was rejected.

use plimsoll_stats::{BatchVariance, NoIntervalReason, rounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// A 95 % confidence interval of a percentile, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of batches that it was computed from.
    pub batches: u64,
    /// The number of independent samples that would give the same interval. Far below the count if
    /// slow requests come in bursts.
    pub effective_samples: u64,
}

/// The interval of quantile `q`: the values of the whole distribution at the two shares of
/// [`BatchVariance::shares`] (Woodruff's method).
pub(crate) fn interval(
    whole: &Distribution,
    q: f64,
    variance: &BatchVariance,
) -> Result<Interval, NoIntervalReason> {
    let count = whole.count();
    let (low, high, effective) = variance.shares(q, count);
    if low * (count as f64) < 1.0 || (1.0 - high) * (count as f64) < 1.0 {
        return Err(NoIntervalReason::BeyondExtremes);
    }
    let ends = whole.nearest_rank(low).zip(whole.nearest_rank(high));
    let (low, high) = ends.ok_or(NoIntervalReason::BeyondExtremes)?;
    Ok(Interval {
        low: low.as_millis_f64(),
        high: high.as_millis_f64(),
        batches: variance.batches,
        effective_samples: rounded(effective),
    })
}

#[cfg(test)]
mod tests;
