//! Ratios of sums over batches, such as CPU time per request, and their differences.

use crate::batches::BatchVariance;
use crate::interval::{Estimate, Interval, NoIntervalReason};
use crate::looks::Looks;

/// The two sums of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Numerator, such as CPU time.
    pub above: f64,
    /// Denominator, such as requests.
    pub below: f64,
}

impl Sums {
    fn total(batches: impl Iterator<Item = Self>) -> Self {
        batches.fold(Self::default(), |sum, batch| Self {
            above: sum.above + batch.above,
            below: sum.below + batch.below,
        })
    }

    fn ratio(self) -> f64 {
        if self.below > 0.0 { self.above / self.below } else { 0.0 }
    }

    /// Excess of a batch over its expected value at the overall ratio, by linearisation.
    fn residual(self, batch: Self) -> f64 {
        let more = batch.above - self.ratio() * batch.below;
        if self.below > 0.0 { more / self.below } else { 0.0 }
    }
}

/// The ratio of the sums of all batches, which are in their order in time.
///
/// # Errors
/// Returns the reason why an interval cannot be computed.
pub fn ratio(batches: &[Sums], looks: Looks) -> Result<Estimate, NoIntervalReason> {
    let pairs: Vec<_> = batches.iter().map(|batch| (*batch, Sums::default())).collect();
    difference_of(&pairs, false, looks)
}

/// The ratio of one target minus the ratio of another, batch by batch: common effects cancel out.
/// Each batch has the sums of the target and of the reference.
///
/// # Errors
/// Returns the reason why an interval cannot be computed.
pub fn difference(batches: &[(Sums, Sums)], looks: Looks) -> Result<Estimate, NoIntervalReason> {
    difference_of(batches, true, looks)
}

fn difference_of(
    batches: &[(Sums, Sums)],
    both: bool,
    looks: Looks,
) -> Result<Estimate, NoIntervalReason> {
    let target = Sums::total(batches.iter().map(|batch| batch.0));
    let reference = Sums::total(batches.iter().map(|batch| batch.1));
    if target.below <= 0.0 || (both && reference.below <= 0.0) {
        return Err(NoIntervalReason::TooFewSamples(0, 1));
    }
    let residuals: Vec<f64> = batches
        .iter()
        .map(|(mine, theirs)| target.residual(*mine) - reference.residual(*theirs))
        .collect();
    let sizes: Vec<f64> = batches.iter().map(|(mine, theirs)| mine.below + theirs.below).collect();
    let variance = BatchVariance::of_residuals(&residuals, &sizes)?;
    looks.check(&variance)?;
    let value = target.ratio() - reference.ratio();
    let error = variance.variance.sqrt();
    let (count, freedom) = (variance.batches, variance.degrees_of_freedom);
    let half = looks.critical(count, freedom) * error;
    Ok(Estimate {
        value,
        interval: Interval { low: value - half, high: value + half },
        batches: count,
        degrees_of_freedom: freedom,
        effective: freedom + 1.0,
        p_zero: looks.two_sided_p(value / error, count, freedom),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(above: f64, below: f64) -> Sums {
        Sums { above, below }
    }

    /// Ten batches of 100 requests, with 2,000 and 3,000 in turn: 25 each. Residuals are -+500 of
    /// 1,000, so the variance is 10 * 0.25 * 10/9 and t(9) is 2.262157.
    #[test]
    fn a_ratio_has_the_interval_of_its_formula() {
        let batches: Vec<_> =
            (0..10).map(|n| sums(2_000.0 + 1_000.0 * f64::from(n % 2), 100.0)).collect();
        let found = ratio(&batches, Looks::Once).unwrap();
        assert!((found.value - 25.0).abs() < 1e-12);
        let half = 2.262_157 * (10.0 * 0.25 * 10.0 / 9.0_f64).sqrt();
        assert!((found.interval.half_width() - half).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn what_both_targets_have_in_common_cancels_out() {
        let noise = |n: i32| f64::from(n * 37 % 11) * 1_000.0;
        let batches: Vec<_> =
            (0..30).map(|n| (sums(noise(n) + 500.0, 100.0), sums(noise(n), 100.0))).collect();
        let found = difference(&batches, Looks::Once).unwrap();
        assert!((found.value - 5.0).abs() < 1e-9);
        assert!(found.interval.half_width() < 1e-6 && found.p_zero < 1e-6, "{found:?}");
        let nothing = vec![(sums(1.0, 0.0), sums(1.0, 5.0)); 20];
        let too_few = NoIntervalReason::TooFewSamples(0, 1);
        assert_eq!(difference(&nothing, Looks::Once), Err(too_few));
        assert_eq!(difference(&batches[..5], Looks::Once), Err(NoIntervalReason::TooFewBatches));
    }
}
