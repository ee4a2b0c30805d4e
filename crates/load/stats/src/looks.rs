//! How often the data are looked at: once, at the end; or at every moment, to stop as soon as a
//! comparison is decided.
//!
//! Checking a 95 % interval every second and stopping when it excludes 0 reports a difference
//! between equal targets in four of ten runs. An asymptotic confidence sequence (Waudby-Smith and
//! others, 2021) is valid at all looks together with 95 % probability, at the price of intervals
//! about 1.5 times as wide. It requires batches of one fixed length, which are never merged.

use crate::batches::{BatchVariance, LimitCount};
use crate::interval::{BATCHES_NEEDED, NoIntervalReason};
use crate::student_t;

/// Batches before the first look.
pub const FIRST_LOOK: u32 = 20;

/// The number of batches at which the sequence is narrowest.
const NARROWEST: f64 = 60.0;
/// Optimal at [`NARROWEST`] for 5 %: `(-2 ln 0.05 + ln(1 - 2 ln 0.05)) / 60`.
const SCALE: f64 = 7.936 / NARROWEST;
/// The level of intervals.
const LEVEL: f64 = 0.05;

/// How often the data are looked at before the measurement ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Looks {
    /// Once: its length was fixed beforehand.
    #[default]
    Once,
    /// At every moment, and the measurement may end at each: the intervals are valid at all looks
    /// together.
    Always,
}

impl Looks {
    /// Batches that an interval needs.
    pub const fn batches_needed(self) -> u32 {
        match self {
            Self::Once => BATCHES_NEEDED,
            Self::Always => FIRST_LOOK,
        }
    }

    /// How many standard errors an interval reaches to both sides.
    pub fn critical(self, batches: u64, degrees_of_freedom: f64) -> f64 {
        match self {
            Self::Once => student_t::critical_95(degrees_of_freedom),
            Self::Always => critical(batches, LEVEL),
        }
    }

    /// Two-sided p value of an estimate by its distance from the hypothesis in standard errors.
    pub fn two_sided_p(self, distance: f64, batches: u64, degrees_of_freedom: f64) -> f64 {
        match self {
            Self::Once => student_t::two_sided_p(distance, degrees_of_freedom),
            Self::Always => always_valid_p(distance, batches),
        }
    }

    /// Whether a variance is based on enough batches.
    pub(crate) fn check(self, variance: &BatchVariance) -> Result<(), NoIntervalReason> {
        let enough = self == Self::Once || variance.batches >= u64::from(FIRST_LOOK);
        if enough { Ok(()) } else { Err(NoIntervalReason::TooFewBatches) }
    }
}

/// Critical value that replaces Student's t after `batches`, at level `alpha` for all looks
/// together.
pub fn critical(batches: u64, alpha: f64) -> f64 {
    let information = batches as f64 * SCALE;
    let root = (information + 1.0).sqrt();
    (2.0 * (information + 1.0) / information * (root / alpha).ln()).sqrt()
}

/// The level at which [`critical`] is this distance: its inverse.
fn always_valid_p(distance: f64, batches: u64) -> f64 {
    let information = batches as f64 * SCALE;
    let exponent = distance * distance * information / (2.0 * (information + 1.0));
    ((information + 1.0).sqrt() * (-exponent).exp()).min(1.0)
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
    fn a_p_value_is_the_level_at_which_its_distance_is_critical() {
        for (batches, level) in [(20, 0.05), (60, 0.05), (60, 0.001), (500, 0.2)] {
            let p = Looks::Always.two_sided_p(critical(batches, level), batches, f64::NAN);
            assert!((p - level).abs() < 1e-12, "{batches} {level}: {p}");
        }
        assert!((Looks::Always.two_sided_p(0.0, 60, f64::NAN) - 1.0).abs() < 1e-12);
    }
}
