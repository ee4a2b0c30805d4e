//! Intervals that hold at every look: for stopping as soon as a comparison is decided.
//!
//! Who looks at a 95 % interval every second, and stops when it excludes 0, finds a difference
//! between equal targets in four of ten runs. An asymptotic confidence sequence (Waudby-Smith and
//! others, 2021) is right at all looks together in 95 %; its price are intervals about 1.5 times as
//! wide. It stands on batches of one fixed length, which are never put together again.

use crate::batches::{BatchVariance, LimitCount};
use crate::interval::{Interval, NoIntervalReason};

/// Batches before the first look.
pub const FIRST_LOOK: usize = 20;

/// The number of batches at which the sequence is narrowest.
const NARROWEST: f64 = 60.0;

/// What takes the place of Student's t after `batches`, at level `alpha` for all looks together.
pub fn critical(batches: usize, alpha: f64) -> f64 {
    // Optimal at NARROWEST for 5 %: (-2 ln 0.05 + ln(1 - 2 ln 0.05)) / 60.
    const SCALE: f64 = 7.936 / NARROWEST;
    let information = batches as f64 * SCALE;
    let root = (information + 1.0).sqrt();
    (2.0 * (information + 1.0) / information * (root / alpha).ln()).sqrt()
}

/// Values in batches of one second.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    batches: Vec<Vec<f64>>,
    ascending: Vec<f64>,
}

impl Sequence {
    /// The batches so far, in their order in time. Empty ones are left out.
    pub fn new(batches: Vec<Vec<f64>>) -> Self {
        let mut batches = batches;
        batches.retain(|batch| !batch.is_empty());
        for batch in &mut batches {
            batch.sort_unstable_by(f64::total_cmp);
        }
        let mut ascending: Vec<f64> = batches.iter().flatten().copied().collect();
        ascending.sort_unstable_by(f64::total_cmp);
        Self { batches, ascending }
    }

    /// The interval of quantile `q` at this look; with all others it holds at level `alpha`.
    ///
    /// # Errors
    /// [`NoIntervalReason::TooFewBatches`] before [`FIRST_LOOK`];
    /// [`NoIntervalReason::BeyondExtremes`].
    pub fn interval(&self, q: f64, alpha: f64) -> Result<Interval, NoIntervalReason> {
        if self.batches.len() < FIRST_LOOK {
            return Err(NoIntervalReason::TooFewBatches);
        }
        let critical = critical(self.batches.len(), alpha);
        // Shares rise with the value: from `too low` over `possible` to `too high`.
        let index = |above: f64| {
            self.ascending.partition_point(|value| {
                self.statistic(q, *value).is_ok_and(|statistic| statistic < above)
            })
        };
        let (low, high) = (index(-critical), index(critical));
        let at = |index: usize| self.ascending.get(index).copied();
        // The first value is possible, or even the last: the interval has no end there.
        let bounded = low > 0 && high < self.ascending.len();
        match (at(low), at(high)) {
            (Some(low), Some(high)) if bounded => Ok(Interval { low, high }),
            _ => Err(NoIntervalReason::BeyondExtremes),
        }
    }

    fn statistic(&self, q: f64, supposed: f64) -> Result<f64, NoIntervalReason> {
        let count = |batch: &Vec<f64>| LimitCount {
            within: batch.partition_point(|value| *value <= supposed) as u64,
            all: batch.len() as u64,
        };
        statistic(&self.batches.iter().map(count).collect::<Vec<_>>(), q)
    }
}

/// How far the share of values up to a supposed quantile `q` is from `q`, in standard errors. The
/// supposed value is contradicted if it is further than [`critical`].
///
/// # Errors
/// [`NoIntervalReason::TooFewBatches`].
pub fn statistic(batches: &[LimitCount], q: f64) -> Result<f64, NoIntervalReason> {
    let total = LimitCount::sum(batches);
    let independent = q * (1.0 - q) / total.all as f64;
    let variance = BatchVariance::of_shares(batches)?.variance.max(independent);
    Ok((total.share() - q) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_value_is_that_of_the_formula() {
        // 60 batches: sqrt(2 * 8.936 / 7.936 * ln(sqrt(8.936) / 0.05)).
        assert!((critical(60, 0.05) - 3.0351).abs() < 0.001, "{}", critical(60, 0.05));
        assert!(critical(20, 0.05) > 3.1 && critical(300, 0.05) > 3.0);
        assert!(critical(60, 0.01) > critical(60, 0.05));
    }

    #[test]
    fn an_interval_contains_the_median_and_needs_twenty_looks() {
        let batches =
            |n: i32| (0..n).map(|i| (0..50).map(|j| f64::from(i + j)).collect::<Vec<f64>>());
        let sequence = Sequence::new(batches(19).collect());
        assert_eq!(sequence.interval(0.5, 0.05), Err(NoIntervalReason::TooFewBatches));
        let sequence = Sequence::new((0..30).flat_map(|_| batches(1)).collect());
        let interval = sequence.interval(0.5, 0.05).unwrap();
        assert!(interval.contains(24.5) && interval.half_width() < 5.0, "{interval:?}");
    }
}
