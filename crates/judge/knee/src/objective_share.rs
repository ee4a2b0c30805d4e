//! The share of requests that kept an objective, with an interval and what it proves.

use plimsoll_stats::student_t;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests of a stretch of time, and those that missed the objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that missed it: late, failed, refused, never sent or unfinished.
    pub missed: u64,
    /// Of these, the ones that would have kept it without what the generator itself may have added.
    pub doubtful: u64,
    /// All requests that were due.
    pub all: u64,
}

impl Counts {
    /// Adds the counts of another stretch.
    pub const fn add(&mut self, other: Self) {
        self.missed += other.missed;
        self.doubtful += other.doubtful;
        self.all += other.all;
    }

    /// The counts of several stretches.
    pub fn sum(counts: impl Iterator<Item = Self>) -> Self {
        counts.fold(Self::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }

    /// Misses besides those that may be the generator's fault.
    pub(crate) const fn certain_misses(self) -> u64 {
        self.missed - self.doubtful
    }

    /// The counts without what may be the generator's fault.
    const fn certain(self) -> Self {
        Self { missed: self.certain_misses(), doubtful: 0, all: self.all }
    }
}

/// One minus the tail of the 98 % interval: levels are proven at both ends of a search.
const ONE_SIDED: f64 = 0.99;

/// What the probes at a load show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The objective was kept: all of the interval keeps it.
    Kept,
    /// It was missed: none of the interval keeps it.
    Missed,
    /// Neither is proven: the interval spans the objective, or misses that the generator may have
    /// caused decide, or there was no long probe.
    Unclear,
    /// The target failed, and failed at the lowest load, too.
    Down,
}

/// The share of requests that kept the objective, from 0 to 1, with its 98 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptShare {
    /// The share.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl KeptShare {
    /// The share over all batches, which are in their order in time.
    ///
    /// Wilson's score interval (1927) for a sample of the effective size: requests that wait in the
    /// same queue miss together, so that the variance between batches divided by that of
    /// independent requests, the design effect (Kish, 1965), divides the number of requests.
    /// Correlation of neighbours widens it further, as it does everywhere (`docs/statistics.md`).
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

    /// What batches prove of an objective that `share` of the requests must keep: it is kept if it
    /// is with every miss, and missed if it is without those that may be the generator's fault.
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

/// The variance of the share of misses between batches, by that of independent requests; 1 at
/// least.
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
        // Wilson, n = 1,600, 16 misses, t of 15 degrees and 98 % 2.6025: 0.528 to 1.885 % by hand.
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
