//! Batch means: the variance of a figure, from batches of values in their order in time.
//!
//! Requests are not independent: those in the same queue are slow together. The variance is
//! therefore estimated between batches of a second or more, and corrected for the remaining
//! correlation between neighbours. `docs/statistics.md` has the formulas and their sources.

use crate::interval::{BATCHES_NEEDED, NoIntervalReason};
use crate::student_t;

/// Most batches of one stage. When there are more, each two neighbours are merged and new batches
/// are twice as long; so a long stage ends with 32 to 64. More than 30 add little information about
/// the
/// variance (Schmeiser, 1982), and longer batches are less correlated.
pub const MAX_BATCHES: usize = 64;

/// The largest autocorrelation between batches that is corrected for. With a larger one, no two
/// batches of the run are independent.
const MAX_CORRELATION: f64 = 0.9;

/// The values of a batch: how many do not exceed a limit, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCount {
    /// Values up to the limit.
    pub within: u64,
    /// All values.
    pub all: u64,
}

impl LimitCount {
    /// Adds the counts of another batch.
    pub const fn add(&mut self, other: Self) {
        self.within += other.within;
        self.all += other.all;
    }

    /// The counts of all batches.
    pub fn sum(counts: &[Self]) -> Self {
        counts.iter().fold(Self::default(), |mut sum, count| {
            sum.add(*count);
            sum
        })
    }

    /// The share up to the limit; not a number without values.
    pub fn share(self) -> f64 {
        self.within as f64 / self.all as f64
    }
}

/// The variance of a figure, and the degrees of freedom with which it is known.
#[derive(Clone, Copy, Debug)]
pub struct BatchVariance {
    /// The variance.
    pub variance: f64,
    /// Its degrees of freedom.
    pub degrees_of_freedom: f64,
    /// The batches that it was computed from, in equal ones.
    pub batches: u64,
}

impl BatchVariance {
    /// The variance of a figure to which each batch of a stage contributes a residual; these add up
    /// to 0, and are in their order in time. `sizes` has the number of values of each batch.
    ///
    /// Non-overlapping batch means; the remaining correlation of neighbours is corrected as in
    /// Skart. With batches of unequal size it is the variance of a ratio estimator.
    ///
    /// # Errors
    /// [`NoIntervalReason::TooFewBatches`].
    pub fn of_residuals(residuals: &[f64], sizes: &[f64]) -> Result<Self, NoIntervalReason> {
        let effective = effective_batches(sizes);
        // NaN without values.
        if effective.is_nan() || effective < f64::from(BATCHES_NEEDED) {
            return Err(NoIntervalReason::TooFewBatches);
        }
        let sum_of_squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
        let scale = effective / (effective - 1.0);
        Ok(Self {
            variance: sum_of_squares * scale * correlation_factor(residuals, sum_of_squares),
            degrees_of_freedom: effective - 1.0,
            batches: rounded(effective),
        })
    }

    /// The variance of the share of values within the limit, from the batches of a stage in their
    /// order in time.
    ///
    /// # Errors
    /// [`NoIntervalReason::TooFewBatches`].
    pub fn of_shares(batches: &[LimitCount]) -> Result<Self, NoIntervalReason> {
        let total = LimitCount::sum(batches);
        let all = total.all as f64;
        let residuals: Vec<f64> = batches
            .iter()
            .map(|batch: &LimitCount| {
                (batch.within as f64 - total.share() * batch.all as f64) / all
            })
            .collect();
        let sizes: Vec<f64> = batches.iter().map(|batch| batch.all as f64).collect();
        Self::of_residuals(&residuals, &sizes)
    }

    /// The variance of the share in several stages together, which were measured independently:
    /// variances add up with the square of each stage's weight, degrees of freedom by
    /// Satterthwaite.
    pub fn stratified(stages: &[(f64, Self)]) -> Self {
        let parts: Vec<f64> =
            stages.iter().map(|(weight, share)| weight * weight * share.variance).collect();
        let variance: f64 = parts.iter().sum();
        let least =
            stages.iter().map(|(_, share)| share.degrees_of_freedom).fold(f64::INFINITY, f64::min);
        let squares: f64 = parts
            .iter()
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
    pub fn larger(self, other: Self) -> Self {
        if other.variance > self.variance { other } else { self }
    }

    /// The 97.5 % point of Student's t with its degrees of freedom.
    pub fn critical(&self) -> f64 {
        student_t::critical_95(self.degrees_of_freedom)
    }

    /// The two shares between which the quantile `q` of the whole population lies with 95 %
    /// confidence, estimated from `count` values; and the effective number of independent values.
    ///
    /// On the logit scale, so that neither end leaves the range from 0 to 1. Never narrower than
    /// `count` independent values would give.
    pub fn shares(&self, q: f64, count: u64) -> (f64, f64, f64) {
        let binomial = q * (1.0 - q);
        let variance = self.variance.max(binomial / count as f64);
        let half = self.critical() * variance.sqrt() / binomial;
        let middle = logit(q);
        (logistic(middle - half), logistic(middle + half), binomial / variance)
    }
}

/// The shares of [`BatchVariance::shares`] if the `count` values were independent.
pub fn independent_shares(q: f64, count: u64) -> (f64, f64) {
    let exact = BatchVariance { variance: 0.0, degrees_of_freedom: f64::INFINITY, batches: 0 };
    let (low, high, _) = exact.shares(q, count);
    (low, high)
}

/// The number of batches if all were of equal size (Kish's effective number of clusters); not a
/// number without values.
pub fn effective_batches(sizes: &[f64]) -> f64 {
    let all: f64 = sizes.iter().sum();
    let squares: f64 = sizes.iter().map(|size| size * size).sum();
    all * all / squares
}

/// Into how many batches each of `intervals` equal lengths of time is put, by the rule of
/// [`MAX_BATCHES`]: the number of neighbours that make one batch.
pub fn intervals_per_batch(intervals: usize) -> usize {
    intervals.div_ceil(MAX_BATCHES).max(1).next_power_of_two()
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

/// The inverse of [`logistic`].
pub(crate) fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// An effective number of values as a count.
#[expect(
    clippy::cast_possible_truncation,
    reason = "float-to-int casts saturate, and the number is not negative"
)]
pub fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_merged_until_at_most_64_batches_are_left() {
        for (intervals, per_batch) in
            [(0, 1), (1, 1), (60, 1), (64, 1), (65, 2), (128, 2), (129, 4), (1_000, 16)]
        {
            assert_eq!(intervals_per_batch(intervals), per_batch, "{intervals}");
        }
    }

    #[test]
    fn unequal_batches_count_for_less() {
        assert!((effective_batches(&[5.0; 9]) - 9.0).abs() < 1e-12);
        // 10 of 10 values and one of 100: 200 squared over 11,000.
        let mut sizes = vec![10.0; 10];
        sizes.push(100.0);
        assert!((effective_batches(&sizes) - 40_000.0 / 11_000.0).abs() < 1e-12);
        assert!(effective_batches(&[]).is_nan());
    }

    /// Eight batches of 10 with 4 and 6 in turn: the share is 0.5, residuals are -+1 of 80. The sum
    /// of squares is 8 / 6,400, times 8/7; neighbours differ, so nothing is added.
    #[test]
    fn the_variance_is_that_of_the_formula() {
        let batch = |within| LimitCount { within, all: 10 };
        let batches: Vec<_> = (0..8).map(|n| batch(4 + 2 * (n % 2))).collect();
        let found = BatchVariance::of_shares(&batches).unwrap();
        assert!((found.variance - 8.0 / 6_400.0 * 8.0 / 7.0).abs() < 1e-15);
        assert!((found.degrees_of_freedom - 7.0).abs() < 1e-12 && found.batches == 8);
        // The first four low, the others high: six of seven neighbours are alike. r = 5/8 + 1/8.
        let batches: Vec<_> = (0..8).map(|n| batch(4 + 2 * (n / 4))).collect();
        let found = BatchVariance::of_shares(&batches).unwrap();
        let factor = 1.75 / 0.25;
        assert!((found.variance - 8.0 / 6_400.0 * 8.0 / 7.0 * factor).abs() < 1e-15);
        let few = BatchVariance::of_shares(&batches[..7]);
        assert_eq!(few.err(), Some(NoIntervalReason::TooFewBatches));
        assert!(BatchVariance::of_shares(&[]).is_err());
    }
}
