//! A quantile of values with its 95 % interval (Woodruff, 1952), from batches.
//!
//! For the differences of pairs, it is the *overhead* of a target. For a constant addition it
//! equals the shift of every percentile, and where both targets draw the same work it is far more
//! precise.

use crate::batches::{BatchVariance, LimitCount, logit};
use crate::descriptive::{nearest_rank, samples_needed};
use crate::interval::{Estimate, Interval, NoIntervalReason};
use crate::looks::{self, Looks};
use crate::student_t;

/// Values of a stage: its batches in their order in time.
pub type Stage = Vec<Vec<f64>>;

/// All values of some stages, which were measured one after another.
#[derive(Clone, Debug, Default)]
pub struct Batched {
    stages: Vec<Stage>,
    ascending: Vec<f64>,
    looks: Looks,
}

impl Batched {
    /// Values by stage and batch. Empty stages and batches are left out.
    pub fn new(stages: Vec<Stage>) -> Self {
        let stages: Vec<Stage> = stages
            .into_iter()
            .map(|stage| stage.into_iter().filter(|batch| !batch.is_empty()).collect())
            .filter(|stage: &Stage| !stage.is_empty())
            .collect();
        let mut ascending: Vec<f64> = stages.iter().flatten().flatten().copied().collect();
        ascending.sort_unstable_by(f64::total_cmp);
        Self { stages, ascending, looks: Looks::Once }
    }

    /// The same values with another stopping rule. For [`Looks::Always`] batches must have one
    /// length; the batches of all stages then form one sequence.
    pub fn looked_at(mut self, looks: Looks) -> Self {
        if looks == Looks::Always {
            let mut batches: Stage = self.stages.into_iter().flatten().collect();
            for batch in &mut batches {
                batch.sort_unstable_by(f64::total_cmp);
            }
            self.stages = if batches.is_empty() { Vec::new() } else { vec![batches] };
        }
        Self { looks, ..self }
    }

    /// Number of values.
    pub const fn count(&self) -> usize {
        self.ascending.len()
    }

    /// The values in ascending order.
    pub fn ascending(&self) -> &[f64] {
        &self.ascending
    }

    /// The quantile `q`; `None` if fewer than [`samples_needed`] values are given.
    pub fn value(&self, q: f64) -> Option<f64> {
        let enough = self.count() as u64 >= samples_needed(q);
        nearest_rank(&self.ascending, q).filter(|_| enough)
    }

    /// The quantile `q` with its interval.
    ///
    /// # Errors
    /// Why the interval is missing.
    pub fn estimate(&self, q: f64) -> Result<Estimate, NoIntervalReason> {
        let too_few = NoIntervalReason::TooFewSamples(self.count() as u64, samples_needed(q));
        let value = self.value(q).ok_or(too_few)?;
        if self.looks == Looks::Always {
            return self.estimate_always(q, value);
        }
        // Where many values are equal, the share below them varies too, and the larger counts.
        let up_to = self.variance(|other| other <= value)?;
        let below = self.variance(|other| other < value)?;
        let variance = up_to.larger(below);
        let count = self.count() as f64;
        let (low, high, effective) = variance.shares(q, self.count() as u64);
        if low * count < 1.0 || (1.0 - high) * count < 1.0 {
            return Err(NoIntervalReason::BeyondExtremes);
        }
        let ends = nearest_rank(&self.ascending, low).zip(nearest_rank(&self.ascending, high));
        let (low, high) = ends.ok_or(NoIntervalReason::BeyondExtremes)?;
        Ok(Estimate {
            value,
            interval: Interval { low, high },
            batches: variance.batches,
            degrees_of_freedom: variance.degrees_of_freedom,
            effective,
            p_zero: self.p_zero(q, value, &variance),
        })
    }

    /// The two-sided p value of "the quantile is 0": the level at which the interval would end at
    /// 0.
    fn p_zero(&self, q: f64, value: f64, variance: &BatchVariance) -> f64 {
        let count = self.count() as f64;
        let binomial = q * (1.0 - q);
        let spread = variance.variance.max(binomial / count).sqrt() / binomial;
        let up_to = self.ascending.partition_point(|other| *other <= 0.0) as f64 / count;
        let below = self.ascending.partition_point(|other| *other < 0.0) as f64 / count;
        // Half a value beyond the extremes: nothing is impossible.
        let edge = 0.5 / count;
        let distance = if value > 0.0 {
            logit(q) - logit(up_to.max(edge))
        } else {
            logit(below.min(1.0 - edge)) - logit(q)
        };
        student_t::two_sided_p(distance.max(0.0) / spread, variance.degrees_of_freedom)
    }

    /// The interval contains all values that no look contradicts. The variance depends on the
    /// tested value, as in a score test.
    fn estimate_always(&self, q: f64, value: f64) -> Result<Estimate, NoIntervalReason> {
        let variance = self.variance(|other| other <= value)?;
        self.looks.check(&variance)?;
        let critical = self.looks.critical(variance.batches, variance.degrees_of_freedom);
        let low = self.first_with_statistic(q, -critical);
        let high = self.first_with_statistic(q, critical);
        // The first value is possible, or even the last: the interval has no end there.
        if low == 0 || high >= self.ascending.len() {
            return Err(NoIntervalReason::BeyondExtremes);
        }
        let count = self.count() as f64;
        let independent = q * (1.0 - q) / count;
        let up_to_zero = self.statistic(q, |batch| batch.partition_point(|v| *v <= 0.0))?;
        let below_zero = self.statistic(q, |batch| batch.partition_point(|v| *v < 0.0))?;
        let distance = below_zero.max(-up_to_zero).max(0.0);
        let (batches, freedom) = (variance.batches, variance.degrees_of_freedom);
        Ok(Estimate {
            value,
            interval: Interval { low: self.ascending[low], high: self.ascending[high] },
            batches,
            degrees_of_freedom: freedom,
            effective: independent / variance.variance.max(independent) * count,
            p_zero: self.looks.two_sided_p(distance, batches, freedom),
        })
    }

    /// The first value up to which the share of values is so far above `q` that it reaches
    /// `bound`: shares rise with the value.
    fn first_with_statistic(&self, q: f64, bound: f64) -> usize {
        self.ascending.partition_point(|supposed| {
            let up_to = self.statistic(q, |batch| batch.partition_point(|v| v <= supposed));
            up_to.is_ok_and(|up_to| up_to < bound)
        })
    }

    /// How far the share of values that `within` counts in each batch is from `q`.
    fn statistic(&self, q: f64, within: impl Fn(&[f64]) -> usize) -> Result<f64, NoIntervalReason> {
        let batches = self.stages.iter().flatten();
        let counts: Vec<_> = batches
            .map(|batch| LimitCount { within: within(batch) as u64, all: batch.len() as u64 })
            .collect();
        looks::statistic(&counts, q)
    }

    fn variance(&self, within: impl Fn(f64) -> bool) -> Result<BatchVariance, NoIntervalReason> {
        let stages = self
            .stages
            .iter()
            .map(|stage: &Stage| {
                let counts: Vec<_> = stage
                    .iter()
                    .map(|batch: &Vec<f64>| LimitCount {
                        within: batch.iter().filter(|value| within(**value)).count() as u64,
                        all: batch.len() as u64,
                    })
                    .collect();
                let weight = LimitCount::sum(&counts).all as f64 / self.count() as f64;
                Ok((weight, BatchVariance::of_shares(&counts)?))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if stages.is_empty() {
            return Err(NoIntervalReason::TooFewBatches);
        }
        Ok(BatchVariance::stratified(&stages))
    }
}
