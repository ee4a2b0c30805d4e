//! Several rounds of the same measurement.
//!
//! An interval of one round applies to its window only. Differences between windows, such as other
//! load on the host, show only between rounds. They are combined into a random-effects mean with
//! the interval of Hartung and Knapp.

use crate::interval::Interval;
use crate::student_t;

/// Result of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The estimate.
    pub value: f64,
    /// Its standard error within the round.
    pub standard_error: f64,
}

/// The mean over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverRounds {
    /// The mean.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Interval,
    /// Two-sided p value of "the mean is 0".
    pub p_zero: f64,
    /// Standard deviation between rounds, beyond what their own errors explain.
    pub between: f64,
}

/// The mean of at least two rounds; `None` of fewer, or if a number is not finite.
///
/// The variance between rounds by Paule and Mandel (1982); the interval by Hartung and Knapp
/// (2001) with t of one less than the rounds, and never narrower than the rounds' own errors allow
/// (Knapp and Hartung, 2003).
pub fn hartung_knapp(rounds: &[Round]) -> Option<OverRounds> {
    if rounds.len() < 2
        || !rounds
            .iter()
            .all(|round: &Round| round.value.is_finite() && round.standard_error.is_finite())
    {
        return None;
    }
    let freedom = (rounds.len() - 1) as f64;
    let between = between_variance(rounds, freedom);
    let weighted = Weighted::mean_of(rounds, between);
    let spread = (weighted.squares / freedom).max(1.0);
    let error = (spread / weighted.weight).sqrt();
    let half = student_t::critical_95(freedom) * error;
    Some(OverRounds {
        value: weighted.mean,
        interval: Interval { low: weighted.mean - half, high: weighted.mean + half },
        p_zero: student_t::two_sided_p(weighted.mean / error, freedom),
        between: between.sqrt(),
    })
}

/// A weighted mean of rounds.
struct Weighted {
    mean: f64,
    weight: f64,
    squares: f64,
}

impl Weighted {
    fn mean_of(rounds: &[Round], between: f64) -> Self {
        // A round that knows no error of its own must not outweigh all others.
        let largest = rounds.iter().map(|round| round.value.abs()).fold(0.0, f64::max);
        let least = if largest > 0.0 { largest } else { 1.0 } * 1e-9;
        let weights: Vec<f64> = rounds
            .iter()
            .map(|round| 1.0 / (round.standard_error.powi(2) + between + least * least))
            .collect();
        let sum: f64 = weights.iter().sum();
        let weighted = rounds.iter().zip(&weights);
        let mean = weighted.clone().map(|(round, weight)| weight * round.value).sum::<f64>() / sum;
        let squares = weighted.map(|(round, weight)| weight * (round.value - mean).powi(2)).sum();
        Self { mean, weight: sum, squares }
    }
}

/// The variance between rounds at which they scatter as much as they should; 0 if they scatter less
/// without any.
fn between_variance(rounds: &[Round], freedom: f64) -> f64 {
    const HALVINGS: usize = 100;
    if Weighted::mean_of(rounds, 0.0).squares <= freedom {
        return 0.0;
    }
    let values: Vec<f64> = rounds.iter().map(|round| round.value).collect();
    // With the whole variance of the values as variance between rounds they scatter too little.
    let (mut low, mut high) = (0.0, crate::descriptive::sum_of_squares(&values));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let scatter = Weighted::mean_of(rounds, middle).squares;
        if scatter > freedom { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[f64], standard_error: f64) -> Vec<Round> {
        values.iter().map(|&value| Round { value, standard_error }).collect()
    }

    /// The rounds' own errors are small compared with their differences: the plain t interval of
    /// 10, 12, 14 and 16, 13 -+ 3.182446 sqrt(20/3/4).
    #[test]
    fn rounds_that_differ_have_the_plain_t_interval() {
        let found = hartung_knapp(&rounds(&[10.0, 12.0, 14.0, 16.0], 0.01)).unwrap();
        let half = 3.182_446 * (20.0 / 3.0 / 4.0_f64).sqrt();
        assert!((found.value - 13.0).abs() < 1e-6);
        assert!((found.interval.half_width() - half).abs() < 1e-3, "{found:?}");
        // The variance of the values is 20/3; of that 0.01^2 is the rounds' own.
        assert!((found.between - (20.0 / 3.0_f64).sqrt()).abs() < 1e-3, "{found:?}");
    }

    /// Equal rounds: not certain, but as certain as their own errors. t(2) is 4.302653.
    #[test]
    fn rounds_that_agree_by_chance_are_not_taken_for_certain() {
        let found = hartung_knapp(&rounds(&[10.0, 10.0, 10.0], 1.0)).unwrap();
        assert!((found.interval.half_width() - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-5);
        assert!(found.between.abs() < 1e-12);
    }

    #[test]
    fn rounds_that_all_found_nothing_agree() {
        let found = hartung_knapp(&rounds(&[0.0, 0.0, 0.0], 0.0)).unwrap();
        assert!(found.interval.contains(0.0) && found.interval.half_width() < 1e-6, "{found:?}");
        assert!((found.p_zero - 1.0).abs() < 1e-9);
    }

    #[test]
    fn one_round_has_no_interval_between_rounds() {
        assert_eq!(hartung_knapp(&rounds(&[10.0], 1.0)), None);
        assert_eq!(hartung_knapp(&rounds(&[10.0, f64::NAN], 1.0)), None);
    }
}
