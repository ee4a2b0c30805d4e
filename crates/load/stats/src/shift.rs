//! The difference of one quantile between two targets, with a paired score interval.
//!
//! To test a difference x, x is subtracted from every value of the target. If x is the true
//! difference, both targets then have the same share of values up to the quantile of all values
//! together. The interval contains all x that the shares of the batches do not contradict. No
//! density is estimated and nothing is resampled; equal values are allowed, and effects common to
//! both targets cancel out batch by batch.

use crate::batches::BatchVariance;
use crate::descriptive::{nearest_rank, rank, samples_needed};
use crate::interval::{Estimate, Interval, NoIntervalReason};
use crate::looks::Looks;

/// Values of the same batch on both targets. They may differ in number, and may be infinite.
#[derive(Clone, Debug, Default)]
pub struct BatchPair {
    /// The target's values.
    pub target: Vec<f64>,
    /// The reference's values.
    pub reference: Vec<f64>,
}

/// Halvings of the range in which an end of the interval lies: more than a number has digits.
const HALVINGS: usize = 60;

/// Two targets, compared by quantiles.
#[derive(Clone, Debug)]
pub struct Shift {
    stages: Vec<Vec<BatchPair>>,
    target: Vec<f64>,
    reference: Vec<f64>,
    looks: Looks,
}

/// Test of a hypothetical difference by the batches.
struct Test {
    /// Difference of the shares of values up to the common quantile.
    difference: f64,
    variance: BatchVariance,
}

impl Shift {
    /// Values by stage and batch, the batches in their order in time. Batches without a value on
    /// either side are left out.
    pub fn new(stages: Vec<Vec<BatchPair>>) -> Self {
        let mut stages: Vec<Vec<BatchPair>> = stages
            .into_iter()
            .map(|stage| {
                stage
                    .into_iter()
                    .filter(|batch: &BatchPair| {
                        !batch.target.is_empty() && !batch.reference.is_empty()
                    })
                    .collect()
            })
            .filter(|stage: &Vec<BatchPair>| !stage.is_empty())
            .collect();
        for batch in stages.iter_mut().flatten() {
            batch.target.sort_unstable_by(f64::total_cmp);
            batch.reference.sort_unstable_by(f64::total_cmp);
        }
        let target = all(&stages, |batch| &batch.target);
        let reference = all(&stages, |batch| &batch.reference);
        Self { stages, target, reference, looks: Looks::Once }
    }

    /// The same values with another stopping rule. For [`Looks::Always`] batches must have one
    /// length; the batches of all stages then form one sequence.
    pub fn looked_at(mut self, looks: Looks) -> Self {
        if looks == Looks::Always {
            let batches: Vec<BatchPair> = self.stages.into_iter().flatten().collect();
            self.stages = if batches.is_empty() { Vec::new() } else { vec![batches] };
        }
        Self { looks, ..self }
    }

    /// Number of values of the target that has fewer.
    pub fn pairs(&self) -> usize {
        self.target.len().min(self.reference.len())
    }

    /// Quantile `q` of the target minus quantile `q` of the reference; `None` if either has fewer
    /// than [`samples_needed`] values.
    pub fn value(&self, q: f64) -> Option<f64> {
        let enough = self.pairs() as u64 >= samples_needed(q);
        let value = nearest_rank(&self.target, q)? - nearest_rank(&self.reference, q)?;
        Some(value).filter(|value| enough && value.is_finite())
    }

    /// The difference of quantile `q` with its interval.
    ///
    /// # Errors
    /// Why the interval is missing.
    pub fn estimate(&self, q: f64) -> Result<Estimate, NoIntervalReason> {
        let (count, needed) = (self.pairs() as u64, samples_needed(q));
        if count < needed {
            return Err(NoIntervalReason::TooFewSamples(count, needed));
        }
        // There is no value where the percentile is a turn without an end.
        let value = self.value(q).ok_or(NoIntervalReason::BeyondExtremes)?;
        let at_value = self.test(q, value)?;
        self.looks.check(&at_value.variance)?;
        let (lowest, highest) = self.extremes().ok_or(NoIntervalReason::BeyondExtremes)?;
        let interval =
            Interval { low: self.end(q, value, lowest)?, high: self.end(q, value, highest)? };
        let at_zero = self.test(q, 0.0)?;
        let pairs = self.pairs() as f64;
        let independent = 2.0 * q * (1.0 - q) / pairs;
        let variance = at_value.variance.variance;
        Ok(Estimate {
            value,
            interval,
            batches: at_value.variance.batches,
            degrees_of_freedom: at_value.variance.degrees_of_freedom,
            effective: if variance > 0.0 { independent / variance * pairs } else { pairs },
            p_zero: self.looks.two_sided_p(
                at_zero.statistic(pairs),
                at_zero.variance.batches,
                at_zero.variance.degrees_of_freedom,
            ),
        })
    }

    /// The end of the interval between the estimate and `outermost`, a difference beyond which no
    /// value is on the same side.
    fn end(&self, q: f64, value: f64, outermost: f64) -> Result<f64, NoIntervalReason> {
        if !self.contradicted(q, outermost)? {
            return Err(NoIntervalReason::BeyondExtremes);
        }
        let (mut inner, mut outer) = (value, outermost);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(inner, outer);
            if self.contradicted(q, middle)? { outer = middle } else { inner = middle }
        }
        Ok(outer)
    }

    fn contradicted(&self, q: f64, supposed: f64) -> Result<bool, NoIntervalReason> {
        let test = self.test(q, supposed)?;
        let pairs = self.pairs() as f64;
        let variance = &test.variance;
        let critical = self.looks.critical(variance.batches, variance.degrees_of_freedom);
        Ok(test.statistic(pairs).abs() > critical)
    }

    /// Differences so small and so large that all values of one target lie below all of the other.
    fn extremes(&self) -> Option<(f64, f64)> {
        let (target, reference) = (finite_range(&self.target)?, finite_range(&self.reference)?);
        let slack = 1.0 + (target.1 - target.0 + reference.1 - reference.0) * 1e-9;
        Some((target.0 - reference.1 - slack, target.1 - reference.0 + slack))
    }

    fn test(&self, q: f64, supposed: f64) -> Result<Test, NoIntervalReason> {
        let limit = pooled_quantile(&self.target, supposed, &self.reference, q);
        let stages = self.stages.iter().map(|stage| StageShares::count(stage, supposed, limit));
        let stages: Vec<_> = stages.collect();
        let all: f64 = stages.iter().map(|stage| stage.sizes.iter().sum::<f64>()).sum();
        let mut variances = Vec::with_capacity(stages.len());
        let mut difference = 0.0;
        for stage in &stages {
            let weight = stage.sizes.iter().sum::<f64>() / all;
            difference += weight * stage.difference;
            let variance = BatchVariance::of_residuals(&stage.residuals, &stage.sizes)?;
            variances.push((weight, variance));
        }
        if variances.is_empty() {
            return Err(NoIntervalReason::TooFewBatches);
        }
        Ok(Test { difference, variance: BatchVariance::stratified(&variances) })
    }
}

/// The first and last finite value of ascending ones.
fn finite_range(values: &[f64]) -> Option<(f64, f64)> {
    let first = values.iter().copied().find(|value| value.is_finite());
    Some((first?, values.iter().rev().copied().find(|value| value.is_finite())?))
}

impl Test {
    /// Student's t, with Edwards' correction for continuity: the counts of the two targets add up
    /// to the rank of the quantile, so their difference changes in steps of two values, and half a
    /// step is one.
    fn statistic(&self, pairs: f64) -> f64 {
        let distance = (self.difference.abs() - 1.0 / pairs).max(0.0);
        if distance == 0.0 {
            return 0.0;
        }
        (distance / self.variance.variance.sqrt()).copysign(self.difference)
    }
}

/// The shares of one stage up to a limit.
struct StageShares {
    difference: f64,
    residuals: Vec<f64>,
    sizes: Vec<f64>,
}

impl StageShares {
    fn count(stage: &[BatchPair], supposed: f64, limit: f64) -> Self {
        let counts: Vec<(f64, f64)> = stage
            .iter()
            .map(|batch| {
                let target = batch.target.partition_point(|value| value - supposed <= limit);
                let reference = batch.reference.partition_point(|value| *value <= limit);
                (target as f64, reference as f64)
            })
            .collect();
        let targets = stage.iter().map(|batch| batch.target.len()).sum::<usize>() as f64;
        let references = stage.iter().map(|batch| batch.reference.len()).sum::<usize>() as f64;
        let target_share = counts.iter().map(|count| count.0).sum::<f64>() / targets;
        let reference_share = counts.iter().map(|count| count.1).sum::<f64>() / references;
        Self {
            difference: target_share - reference_share,
            residuals: stage
                .iter()
                .zip(&counts)
                .map(|(batch, count): (&BatchPair, &(f64, f64))| {
                    (count.0 - target_share * batch.target.len() as f64) / targets
                        - (count.1 - reference_share * batch.reference.len() as f64) / references
                })
                .collect(),
            sizes: stage.iter().map(|b| (b.target.len() + b.reference.len()) as f64).collect(),
        }
    }
}

/// Quantile `q`, by nearest rank, of `moved` less `by` and `fixed` together. Both ascend.
fn pooled_quantile(moved: &[f64], by: f64, fixed: &[f64], q: f64) -> f64 {
    let rank = rank(q, moved.len() + fixed.len());
    // The smallest number of moved values among the first `rank`, so that none is left out that is
    // smaller than a fixed one.
    let (mut low, mut high) = (rank.saturating_sub(fixed.len()), rank.min(moved.len()));
    while low < high {
        let from_moved = usize::midpoint(low, high);
        let from_fixed = rank - from_moved;
        if from_fixed > 0 && moved[from_moved] - by < fixed[from_fixed - 1] {
            low = from_moved + 1;
        } else {
            high = from_moved;
        }
    }
    let last_moved = low.checked_sub(1).map(|index| moved[index] - by);
    let last_fixed = (rank - low).checked_sub(1).map(|index| fixed[index]);
    match (last_moved, last_fixed) {
        (Some(moved), Some(fixed)) => moved.max(fixed),
        (moved, fixed) => moved.or(fixed).unwrap_or(f64::NAN),
    }
}

fn all(stages: &[Vec<BatchPair>], values: fn(&BatchPair) -> &Vec<f64>) -> Vec<f64> {
    let mut all: Vec<f64> = stages.iter().flatten().flat_map(values).copied().collect();
    // The stable sort merges the batches, which are already in ascending order.
    all.sort_by(f64::total_cmp);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ascending(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    proptest! {
        #[test]
        fn the_pooled_quantile_is_that_of_the_sorted_pool(
            moved in proptest::collection::vec(-20_i32..20, 1..30),
            fixed in proptest::collection::vec(-20_i32..20, 1..30),
            by in -25_i32..25,
            q in 0.01..0.99,
        ) {
            let float = |values: &[i32]| ascending(values.iter().copied().map(f64::from).collect());
            let (moved, fixed, by) = (float(&moved), float(&fixed), f64::from(by));
            let pool = ascending(moved.iter().map(|v| v - by).chain(fixed.iter().copied()).collect());
            let expected = nearest_rank(&pool, q).unwrap();
            let found = pooled_quantile(&moved, by, &fixed, q);
            prop_assert!((found - expected).abs() < 1e-12, "{} {}", found, expected);
        }
    }

    /// Batches of 20 values from 0 to 19, the target's 5 later.
    fn shifted(batches: usize) -> Shift {
        let batch = || BatchPair {
            target: (0..20).map(|n| f64::from(n) + 5.0).collect(),
            reference: (0..20).map(f64::from).collect(),
        };
        Shift::new(vec![(0..batches).map(|_| batch()).collect()])
    }

    #[test]
    fn a_difference_that_every_batch_has_is_certain() {
        let found = shifted(10).estimate(0.5).unwrap();
        assert!((found.value - 5.0).abs() < 1e-12);
        assert!(found.interval.contains(5.0), "{found:?}");
        assert!(found.interval.low > 3.0 && found.interval.high < 7.0, "{found:?}");
        assert!(found.p_zero < 1e-6, "{found:?}");
    }

    #[test]
    fn what_cannot_be_known_is_refused() {
        let refused = |shift: Shift, q| shift.estimate(q).err();
        assert_eq!(refused(shifted(7), 0.5), Some(NoIntervalReason::TooFewBatches));
        let too_few = |count, needed| Some(NoIntervalReason::TooFewSamples(count, needed));
        assert_eq!(refused(shifted(40), 0.99), too_few(800, 1_000));
        assert_eq!(refused(Shift::new(Vec::new()), 0.5), too_few(0, 20));
        // All slow values of both targets stand in one batch each: how often that happens is not
        // known.
        let quick = || BatchPair { target: vec![1.0; 100], reference: vec![1.0; 100] };
        let mut stage: Vec<_> = (0..20).map(|_| quick()).collect();
        stage[3].target[..40].fill(9.0);
        stage[11].reference[..40].fill(9.0);
        assert_eq!(refused(Shift::new(vec![stage]), 0.99), Some(NoIntervalReason::BeyondExtremes));
    }

    #[test]
    fn failures_are_infinitely_slow() {
        let mut shift = shifted(10);
        for batch in shift.stages.iter_mut().flatten() {
            batch.target[19] = f64::INFINITY;
        }
        let shift = Shift::new(shift.stages);
        assert!(shift.estimate(0.5).unwrap().interval.contains(5.0));
        assert_eq!(shift.value(0.96), None);
    }
}
