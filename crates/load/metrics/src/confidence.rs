//! 95 % confidence intervals of percentiles, which allow for autocorrelation.
//!
//! `docs/statistics.md` explains the method for a reader without statistics, with formulas and
//! sources; `docs/adr/0002-confidence-intervals.md` says what was rejected.

use plimsoll_measure::Nanos;
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

/// The reason why a percentile has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoIntervalReason {
    /// Too few samples for the percentile itself.
    TooFewSamples,
    /// The order in time of the samples is not known.
    UnknownOrder,
    /// Fewer than [`BATCHES_NEEDED`] batches of a stage.
    TooFewBatches,
    /// The interval would reach beyond the smallest or the largest value.
    BeyondExtremes,
}

impl NoIntervalReason {
    /// The reason in words.
    pub fn words(self) -> String {
        match self {
            Self::TooFewSamples => "too few samples for the percentile".to_owned(),
            Self::UnknownOrder => "the order in time of the samples is not known".to_owned(),
            Self::TooFewBatches => format!(
                "a stage is too short: an interval needs {BATCHES_NEEDED} batches of a second or more"
            ),
            Self::BeyondExtremes => {
                "too few independent samples: the interval would reach beyond the extreme values"
                    .to_owned()
            }
        }
    }
}

/// Batches that an interval needs in every stage, if they are of equal size; unequal ones count for
/// less. With fewer, the variance between batches is hardly known: at 7 degrees of freedom
/// Student's t is 2.4, at 3 it is 3.2.
pub const BATCHES_NEEDED: u32 = 8;

/// The largest autocorrelation between batches that is corrected for. With a larger one, no two
/// batches of the run are independent.
const MAX_CORRELATION: f64 = 0.9;

/// The values of a batch: how many do not exceed a limit, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitCount {
    pub(crate) within: u64,
    pub(crate) all: u64,
}

impl LimitCount {
    pub(crate) const fn add(&mut self, other: Self) {
        self.within += other.within;
        self.all += other.all;
    }

    pub(crate) fn sum(counts: &[Self]) -> Self {
        counts.iter().fold(Self::default(), |mut sum, count| {
            sum.add(*count);
            sum
        })
    }
}

/// The variance of an estimated share, and the degrees of freedom with which it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShareVariance {
    pub(crate) variance: f64,
    pub(crate) degrees_of_freedom: f64,
    pub(crate) batches: u64,
}

impl ShareVariance {
    /// The variance of the share of values within the limit, from the batches of a stage in their
    /// order in time.
    ///
    /// Non-overlapping batch means; a ratio estimator, because batches differ in size; the
    /// remaining correlation of neighbours is corrected as in Skart.
    pub(crate) fn of(batches: &[LimitCount]) -> Result<Self, NoIntervalReason> {
        let total = LimitCount::sum(batches);
        let (all, squares) = batches.iter().fold((0.0, 0.0), |(sum, squares), batch| {
            (sum + batch.all as f64, squares + (batch.all as f64).powi(2))
        });
        // The number of batches if all were of equal size (Kish's effective number of clusters).
        let effective = all * all / squares;
        // NaN if there is no value at all.
        if effective.is_nan() || effective < f64::from(BATCHES_NEEDED) {
            return Err(NoIntervalReason::TooFewBatches);
        }
        let share = total.within as f64 / all;
        let residuals: Vec<f64> =
            batches.iter().map(|batch| batch.within as f64 - share * batch.all as f64).collect();
        let sum_of_squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
        let scale = effective / (effective - 1.0) / (all * all);
        Ok(Self {
            variance: sum_of_squares * scale * correlation_factor(&residuals, sum_of_squares),
            degrees_of_freedom: effective - 1.0,
            batches: rounded(effective),
        })
    }

    /// The variance of the share in several stages together, which were measured independently:
    /// variances add up with the square of each stage's weight, degrees of freedom by
    /// Satterthwaite.
    pub(crate) fn stratified(stages: &[(f64, Self)]) -> Self {
        let parts = || stages.iter().map(|(weight, share)| weight * weight * share.variance);
        let variance: f64 = parts().sum();
        let least =
            stages.iter().map(|(_, share)| share.degrees_of_freedom).fold(f64::INFINITY, f64::min);
        let squares: f64 = parts()
            .zip(stages)
            .map(|(part, (_, share))| part * part / share.degrees_of_freedom)
            .sum();
        Self {
            variance,
            degrees_of_freedom: if squares > 0.0 { variance * variance / squares } else { least },
            batches: stages.iter().map(|(_, share)| share.batches).sum(),
        }
    }

    /// The larger of two variances.
    pub(crate) fn larger(self, other: Self) -> Self {
        if other.variance > self.variance { other } else { self }
    }

    /// The two shares between which the quantile `q` of the whole population lies with 95 %
    /// confidence, estimated from `count` values; and the effective number of independent values.
    ///
    /// On the logit scale, so that neither end leaves the range from 0 to 1. Never narrower than
    /// `count` independent values would give.
    pub(crate) fn shares(&self, q: f64, count: u64) -> (f64, f64, f64) {
        let binomial = q * (1.0 - q);
        let variance = self.variance.max(binomial / count as f64);
        let half = student_t(self.degrees_of_freedom) * variance.sqrt() / binomial;
        let middle = (q / (1.0 - q)).ln();
        (logistic(middle - half), logistic(middle + half), binomial / variance)
    }
}

/// The shares of [`ShareVariance::shares`] if the `count` values were independent.
pub(crate) fn independent_shares(q: f64, count: u64) -> (f64, f64) {
    let exact = ShareVariance { variance: 0.0, degrees_of_freedom: f64::INFINITY, batches: 0 };
    let (low, high, _) = exact.shares(q, count);
    (low, high)
}

/// The interval of quantile `q`: the values of the whole distribution at the two shares of
/// [`ShareVariance::shares`] (Woodruff's method).
pub(crate) fn interval(
    whole: &Distribution,
    q: f64,
    variance: &ShareVariance,
) -> Result<Interval, NoIntervalReason> {
    let count = whole.count();
    let (low, high, effective) = variance.shares(q, count);
    if low * (count as f64) < 1.0 || (1.0 - high) * (count as f64) < 1.0 {
        return Err(NoIntervalReason::BeyondExtremes);
    }
    let value = |share| {
        whole.nearest_rank(share).map(Nanos::as_millis_f64).ok_or(NoIntervalReason::TooFewSamples)
    };
    Ok(Interval {
        low: value(low)?,
        high: value(high)?,
        batches: variance.batches,
        effective_samples: rounded(effective),
    })
}

/// The factor by which correlated neighbours raise the variance: `(1 + r) / (1 - r)`, with r the
/// correlation of one batch with the next; 1 if r is not positive. An estimate of r from k values
/// is about 1/k too low; so 1/k is added.
fn correlation_factor(residuals: &[f64], sum_of_squares: f64) -> f64 {
    let neighbours: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if sum_of_squares <= 0.0 {
        return 1.0;
    }
    let r = neighbours / sum_of_squares + 1.0 / residuals.len() as f64;
    let r = r.clamp(0.0, MAX_CORRELATION);
    (1.0 + r) / (1.0 - r)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The 97.5 % point of Student's t, by the Cornish-Fisher expansion of Abramowitz and Stegun,
/// 26.7.5. The error is below 0.1 % from 5 degrees of freedom on.
fn student_t(degrees_of_freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    const TERMS: [&[f64]; 4] = [
        &[1.0 / 4.0, 1.0 / 4.0],
        &[3.0 / 96.0, 16.0 / 96.0, 5.0 / 96.0],
        &[-15.0 / 384.0, 17.0 / 384.0, 19.0 / 384.0, 3.0 / 384.0],
        &[
            -945.0 / 92_160.0,
            -1_920.0 / 92_160.0,
            1_482.0 / 92_160.0,
            776.0 / 92_160.0,
            79.0 / 92_160.0,
        ],
    ];
    // Each term is an odd polynomial in z; its coefficients start with that of z.
    let odd =
        |coefficients: &[f64]| coefficients.iter().rev().fold(0.0, |sum, c| sum * Z * Z + c) * Z;
    TERMS.iter().rev().fold(0.0, |sum, term| (sum + odd(term)) / degrees_of_freedom) + Z
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate, and neither number is negative"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests;
