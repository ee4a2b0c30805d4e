//! How far a percentile can be trusted: 95 % confidence intervals that allow for autocorrelation.
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
    /// Batches that it rests on.
    pub batches: u64,
    /// As many independent samples would tell as much. Far below the count where slow requests come in
    /// bursts.
    pub effective_samples: u64,
}

/// Why a percentile has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoIntervalReason {
    /// Too few samples for the percentile itself.
    Samples,
    /// It is not known in which order the samples came.
    NoBatches,
    /// Fewer than [`BATCHES_NEEDED`] batches of a stage.
    Batches,
    /// The interval would reach beyond the smallest or the largest value.
    Extreme,
}

impl NoIntervalReason {
    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::Samples => "too few samples for the percentile".to_owned(),
            Self::NoBatches => "the order in time of the samples is not known".to_owned(),
            Self::Batches => format!(
                "a stage is too short: an interval needs {BATCHES_NEEDED} batches of a second or more"
            ),
            Self::Extreme => {
                "too few independent samples: the interval would reach beyond the extreme values"
                    .to_owned()
            }
        }
    }
}

/// Batches (of equal size; unequal ones count for less) that an interval needs in every stage. With
/// fewer, the variance between batches is hardly known: at 7 degrees of freedom Student's t is 2.4, at
/// 3 it is 3.2.
pub const BATCHES_NEEDED: u32 = 8;

/// Autocorrelation between batches is corrected for up to here; beyond, there are no two independent
/// batches in the run.
const MOST_CORRELATED: f64 = 0.9;

/// Of the values of one batch: how many do not exceed a limit, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) within: u64,
    pub(crate) all: u64,
}

impl Tally {
    pub(crate) const fn add(&mut self, other: Self) {
        self.within += other.within;
        self.all += other.all;
    }

    pub(crate) fn sum(tallies: &[Self]) -> Self {
        tallies.iter().fold(Self::default(), |mut sum, tally| {
            sum.add(*tally);
            sum
        })
    }
}

/// The variance of an estimated share, and the degrees of freedom with which it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) variance: f64,
    pub(crate) freedom: f64,
    pub(crate) batches: u64,
}

impl Spread {
    /// Of the share of values within the limit, from the batches of a stage in their order in time.
    ///
    /// Non-overlapping batch means with a ratio estimator, because batches differ in size, and the
    /// remaining correlation of neighbours corrected as in Skart.
    pub(crate) fn of(batches: &[Tally]) -> Result<Self, NoIntervalReason> {
        let total = Tally::sum(batches);
        let (all, squares) = batches.iter().fold((0.0, 0.0), |(sum, squares), batch| {
            (sum + batch.all as f64, squares + (batch.all as f64).powi(2))
        });
        // Batches of equal size would have this number (Kish's effective number of clusters).
        let effective = all * all / squares;
        // NaN where there is no value at all.
        if effective.is_nan() || effective < f64::from(BATCHES_NEEDED) {
            return Err(NoIntervalReason::Batches);
        }
        let share = total.within as f64 / all;
        let residuals: Vec<f64> =
            batches.iter().map(|batch| batch.within as f64 - share * batch.all as f64).collect();
        let square: f64 = residuals.iter().map(|residual| residual * residual).sum();
        let scale = effective / (effective - 1.0) / (all * all);
        Ok(Self {
            variance: square * scale * correction(&residuals, square),
            freedom: effective - 1.0,
            batches: rounded(effective),
        })
    }

    /// Of the share in several stages together, which were measured independently: variances add up
    /// with the square of each stage's weight, degrees of freedom as Satterthwaite has it.
    pub(crate) fn stratified(stages: &[(f64, Self)]) -> Self {
        let parts = || stages.iter().map(|(weight, spread)| weight * weight * spread.variance);
        let variance: f64 = parts().sum();
        let least = stages.iter().map(|(_, spread)| spread.freedom).fold(f64::INFINITY, f64::min);
        let squares: f64 =
            parts().zip(stages).map(|(part, (_, spread))| part * part / spread.freedom).sum();
        Self {
            variance,
            freedom: if squares > 0.0 { variance * variance / squares } else { least },
            batches: stages.iter().map(|(_, spread)| spread.batches).sum(),
        }
    }

    /// The one with the larger variance.
    pub(crate) fn wider(self, other: Self) -> Self {
        if other.variance > self.variance { other } else { self }
    }

    /// The shares between which the quantile `q` of the whole population lies with 95 % confidence,
    /// given that it was estimated from `count` values; and as how many independent values they count.
    ///
    /// On the logit scale, so that neither end leaves the range of 0 to 1. Never narrower than `count`
    /// independent values would give.
    pub(crate) fn shares(&self, q: f64, count: u64) -> (f64, f64, f64) {
        let spread = q * (1.0 - q);
        let variance = self.variance.max(spread / count as f64);
        let half = student(self.freedom) * variance.sqrt() / spread;
        let middle = (q / (1.0 - q)).ln();
        (logistic(middle - half), logistic(middle + half), spread / variance)
    }
}

/// The interval of quantile `q`, read off the whole distribution at the shares of [`Spread::shares`]
/// (Woodruff's method).
pub(crate) fn interval(
    whole: &Distribution,
    q: f64,
    spread: &Spread,
) -> Result<Interval, NoIntervalReason> {
    let count = whole.count();
    let (low, high, effective) = spread.shares(q, count);
    if low * (count as f64) < 1.0 || (1.0 - high) * (count as f64) < 1.0 {
        return Err(NoIntervalReason::Extreme);
    }
    let value = |share| {
        whole.nearest_rank(share).map(Nanos::as_millis_f64).ok_or(NoIntervalReason::Samples)
    };
    Ok(Interval {
        low: value(low)?,
        high: value(high)?,
        batches: spread.batches,
        effective_samples: rounded(effective),
    })
}

/// What correlated neighbours multiply the variance by: `(1 + r) / (1 - r)` with r the correlation of
/// one batch with the next; 1 where it is not positive. An estimate of r from k values is about 1/k too
/// low, which is added.
fn correction(residuals: &[f64], square: f64) -> f64 {
    let neighbours: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if square <= 0.0 {
        return 1.0;
    }
    let r = neighbours / square + 1.0 / residuals.len() as f64;
    let r = r.clamp(0.0, MOST_CORRELATED);
    (1.0 + r) / (1.0 - r)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The 97.5 % point of Student's t: the Cornish-Fisher expansion of Abramowitz and Stegun, 26.7.5, off
/// by less than 0.1 % from 5 degrees of freedom on.
fn student(freedom: f64) -> f64 {
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
    // Each term is an odd polynomial in z, its coefficients from z upwards.
    let odd =
        |coefficients: &[f64]| coefficients.iter().rev().fold(0.0, |sum, c| sum * Z * Z + c) * Z;
    TERMS.iter().rev().fold(0.0, |sum, term| (sum + odd(term)) / freedom) + Z
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
