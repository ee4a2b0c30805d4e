//! The share of requests that met an objective, its interval, and the conclusion.

use plimsoll_stats::student_t;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of requests in a period, and of those that missed the objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that missed it: late, failed, rejected, never sent or unfinished.
    pub missed: u64,
    /// Misses that would have met it without the measurement error.
    pub doubtful: u64,
    /// All requests due in the period.
    pub all: u64,
}

impl Counts {
    /// Adds the counts of another period.
    pub const fn add(&mut self, other: Self) {
        self.missed += other.missed;
        self.doubtful += other.doubtful;
        self.all += other.all;
    }

    /// Sums the counts of several periods.
    pub fn sum(counts: impl Iterator<Item = Self>) -> Self {
        counts.fold(Self::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }

    /// Misses that the generator cannot have caused.
    pub(crate) const fn certain_misses(self) -> u64 {
        self.missed - self.doubtful
    }

    /// The counts without misses that the generator may have caused.
    const fn certain(self) -> Self {
        Self { missed: self.certain_misses(), doubtful: 0, all: self.all }
    }
}

/// One minus the tail probability of the 98 % interval. Each end of the capacity is tested
/// one-sided.
const ONE_SIDED: f64 = 0.99;

/// Conclusion from the probes at a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The objective was met: the whole interval meets it.
    Kept,
    /// It was missed: the whole interval misses it.
    Missed,
    /// Neither is proven: the interval includes the objective, or misses that the generator may
    /// have caused decide, or there was no long probe.
    Unclear,
    /// The target failed, also at the lowest load.
    Down,
}

/// The share of requests that met the objective, from 0 to 1, with its 98 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptShare {
    /// The observed share.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl KeptShare {
    /// The share over all batches in chronological order.
    ///
    /// Uses Wilson's score interval (1927) with the effective sample size: requests in the same
    /// queue miss together, so the number of requests is divided by the design effect (Kish, 1965),
    /// the ratio of the variance between batches to the variance of independent requests.
    /// Correlation of neighbours widens the interval further, as everywhere (`docs/statistics.md`).
    pub fn of(batches: &[Counts]) -> Self {
        let sum = Counts::sum(batches.iter().copied());
        let all = sum.all as f64;
        if sum.all == 0 {
            return Self { value: f64::NAN, low: 0.0, high: 1.0 };
        }
        let missed = sum.missed as f64 / all;
        let n = all / design_effect(batches, missed, all);
        let filled = batches.iter().filter(|batch| batch.all > 0).count();
        let t = student_t::quantile(ONE_SIDED, (filled.max(2) - 1) as f64);
        let centre = t.mul_add(t / (2.0 * n), missed) / (1.0 + t * t / n);
        let half =
            t / (1.0 + t * t / n) * (missed * (1.0 - missed) / n + (t / (2.0 * n)).powi(2)).sqrt();
        let (low, high) = ((centre - half).max(0.0), (centre + half).min(1.0));
        Self { value: 1.0 - missed, low: 1.0 - high, high: 1.0 - low }
    }

    /// Tests whether `share` of the requests meet the objective. It is met if it is with all misses
    /// counted, and missed if it is without those that the generator may have caused.
    pub fn judge(batches: &[Counts], share: f64) -> (Self, State) {
        let all = Self::of(batches);
        let certain: Vec<_> = batches.iter().map(|batch| batch.certain()).collect();
        let certain = Self::of(&certain);
        let state = if all.low >= share {
            State::Kept
        } else if certain.high < share {
            State::Missed
        } else {
            State::Unclear
        };
        (all, state)
    }
}

/// Ratio of the variance of the share of misses between batches to the variance of independent
/// requests; at least 1.
fn design_effect(batches: &[Counts], missed: f64, all: f64) -> f64 {
    const MOST_CORRELATION: f64 = 0.9;
    let batches: Vec<_> = batches.iter().filter(|batch| batch.all > 0).collect();
    let count = batches.len() as f64;
    let independent = missed * (1.0 - missed) / all;
    if batches.len() < 2 || independent <= 0.0 {
        return 1.0;
    }
    let residuals: Vec<f64> =
        batches.iter().map(|batch| batch.missed as f64 - missed * batch.all as f64).collect();
    let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    if squares <= 0.0 {
        return 1.0;
    }
    let neighbours: f64 = residuals.windows(2).map(|two| two[0] * two[1]).sum();
    let correlation = (neighbours / squares).clamp(0.0, MOST_CORRELATION);
    let variance = squares * count / (count - 1.0) / (all * all);
    (variance / independent * (1.0 + correlation) / (1.0 - correlation)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(missed: &[u64]) -> Vec<Counts> {
        missed.iter().map(|&missed| Counts { missed, doubtful: 0, all: 100 }).collect()
    }

    fn state(missed: &[u64], share: f64) -> State {
        KeptShare::judge(&batches(missed), share).1
    }

    #[test]
    fn what_is_spread_evenly_is_known_better_than_a_burst() {
        let even = KeptShare::of(&batches(&[1; 16]));
        let mut misses = [0; 16];
        misses[7] = 16;
        let burst = KeptShare::of(&batches(&misses));
        assert!((even.value - 0.99).abs() < 1e-12 && (burst.value - 0.99).abs() < 1e-12);
        // Wilson with n = 1,600, 16 misses, t of 15 degrees and 98 % = 2.6025: 0.528 to 1.885 % by
        // hand.
        assert!((1.0 - even.high - 0.005_283).abs() < 3e-6, "{even:?}");
        assert!((1.0 - even.low - 0.018_848).abs() < 3e-6, "{even:?}");
        assert!(burst.low < 0.95 && state(&misses, 0.98) == State::Unclear, "{burst:?}");
        assert_eq!(state(&[1; 16], 0.98), State::Kept);
        assert_eq!(state(&[1; 16], 0.995), State::Missed);
    }

    #[test]
    fn misses_that_may_be_the_generators_prove_nothing() {
        let judge = |missed, doubtful| {
            KeptShare::judge(&[Counts { missed, doubtful, all: 100 }; 16], 0.98).1
        };
        assert_eq!(judge(1, 0), State::Kept);
        assert_eq!(judge(1, 1), State::Kept);
        assert_eq!(judge(5, 0), State::Missed);
        assert_eq!(judge(9, 4), State::Missed);
        assert_eq!(judge(5, 4), State::Unclear);
        assert_eq!(judge(2, 0), State::Unclear);
    }

    #[test]
    fn no_miss_in_few_requests_proves_little() {
        assert_eq!(state(&[0, 0], 0.99), State::Unclear);
        assert_eq!(state(&[0; 16], 0.99), State::Kept);
        assert_eq!(state(&[], 0.99), State::Unclear);
        assert_eq!(state(&[100; 4], 0.99), State::Missed);
    }
}
