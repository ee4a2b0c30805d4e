//! Groups of runs, old and new. The unit is the run, not the request, because differences between
//! runs do not show within either.

use crate::descriptive::{mean, sum_of_squares};
use crate::interval::Interval;
use crate::looks::Looks;
use crate::sign_test::sign_p;
use crate::student_t;
use crate::tails::poisson_at_least;

/// Runs on each side from which on both spreads are taken from the runs alone.
const RUNS_FOR_WELCH: usize = 4;
/// More runs on each side are not worth asking for.
const MOST_RUNS: u32 = 1_000;
/// Level of a gate.
const LEVEL: f64 = 0.05;

/// The difference of the means of two groups of runs, new less base. For shares of a figure, the
/// caller gives logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The difference.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The degrees of freedom with which that is known.
    pub degrees_of_freedom: f64,
    /// Standard deviation between runs.
    pub run_sd: f64,
    /// Runs of the base.
    pub base_runs: usize,
    /// New runs.
    pub new_runs: usize,
}

/// The direction in which a figure gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// More is worse, as with times and errors.
    Higher,
    /// Less is worse, as with throughput.
    Lower,
}

/// Confidence interval of the mean of at least two runs.
fn variance_of_mean(runs: &[f64]) -> f64 {
    sum_of_squares(runs) / (runs.len() - 1) as f64 / runs.len() as f64
}

impl Change {
    /// Compares two groups of runs; `None` if one is empty, or if each has one run, whose spread is
    /// unknown.
    pub fn between(base: &[f64], new: &[f64]) -> Option<Self> {
        if base.is_empty() || new.is_empty() {
            return None;
        }
        let estimate = mean(new) - mean(base);
        if base.len().min(new.len()) >= RUNS_FOR_WELCH {
            return Some(Self::welch(estimate, base, new));
        }
        let degrees_of_freedom = (base.len() + new.len() - 2) as f64;
        if degrees_of_freedom == 0.0 {
            return None;
        }
        let squares = sum_of_squares(base) + sum_of_squares(new);
        let run_sd = (squares / degrees_of_freedom).sqrt();
        let error = run_sd * (1.0 / base.len() as f64 + 1.0 / new.len() as f64).sqrt();
        Some(Self {
            estimate,
            standard_error: error,
            degrees_of_freedom,
            run_sd,
            base_runs: base.len(),
            new_runs: new.len(),
        })
    }

    /// Both groups have two runs at least.
    fn welch(estimate: f64, base: &[f64], new: &[f64]) -> Self {
        let (old_part, new_part) = (variance_of_mean(base), variance_of_mean(new));
        let whole = old_part + new_part;
        let satterthwaite = old_part * old_part / (base.len() - 1) as f64
            + new_part * new_part / (new.len() - 1) as f64;
        let pooled_freedom = (base.len() + new.len() - 2) as f64;
        let freedom =
            if satterthwaite > 0.0 { whole * whole / satterthwaite } else { pooled_freedom };
        Self {
            estimate,
            standard_error: whole.sqrt(),
            degrees_of_freedom: freedom,
            run_sd: ((sum_of_squares(base) + sum_of_squares(new)) / pooled_freedom).sqrt(),
            base_runs: base.len(),
            new_runs: new.len(),
        }
    }

    /// Whether both sides have enough runs to estimate their own spread (Welch, 1947); otherwise
    /// the spread is pooled.
    pub fn is_welch(&self) -> bool {
        self.base_runs.min(self.new_runs) >= RUNS_FOR_WELCH
    }

    /// The two-sided interval at a level like 0.95.
    pub fn interval(&self, level: f64) -> Interval {
        let critical = student_t::quantile(f64::midpoint(1.0, level), self.degrees_of_freedom);
        let half = critical * self.standard_error;
        Interval { low: self.estimate - half, high: self.estimate + half }
    }

    /// One-sided p value of "no change", against a change for the worse.
    pub fn p_worse(&self, worse: Worse) -> f64 {
        let t = worse.more(self.estimate) / self.standard_error;
        // No spread and no change: nothing speaks against it.
        if t.is_nan() { 0.5 } else { student_t::cdf(-t, self.degrees_of_freedom) }
    }

    /// The change that would be significant in 80 % of the cases at the one-sided level `alpha`.
    pub fn detectable(&self, alpha: f64) -> f64 {
        let critical = student_t::quantile(1.0 - alpha, self.degrees_of_freedom);
        (critical + student_t::quantile(POWER, self.degrees_of_freedom)) * self.standard_error
    }

    /// Runs on each side so that unchanged code passes a margin in 80 % of the cases; `None` if
    /// that takes more than 1,000.
    pub fn runs_needed(&self, margin: f64) -> Option<u32> {
        (2..=MOST_RUNS).find(|&runs| {
            let error = self.run_sd * (2.0 / f64::from(runs)).sqrt();
            let freedom = f64::from(2 * runs - 2);
            let critical = student_t::quantile(1.0 - LEVEL / 2.0, freedom);
            (critical + student_t::quantile(POWER, freedom)) * error <= margin
        })
    }
}

impl Worse {
    /// How much worse a change is.
    pub fn more(self, change: f64) -> f64 {
        match self {
            Self::Higher => change,
            Self::Lower => -change,
        }
    }
}

/// Judges a gate. It is kept if the worse end of the 95 % interval is within the margin: that needs
/// no adjustment for the number of gates, because all must be kept. It is broken if the change for
/// the worse is significant by `p_holm`, the p value adjusted for all gates, and the estimate is
/// beyond the margin. `None`: neither is proven.
pub fn judge_gate(change: &Change, margin: f64, worse: Worse, p_holm: f64) -> Option<bool> {
    let interval = change.interval(1.0 - LEVEL);
    let worst = worse.more(interval.low).max(worse.more(interval.high));
    if worst <= margin {
        return Some(true);
    }
    (p_holm < LEVEL && worse.more(change.estimate) > margin).then_some(false)
}

// Smallest detectable differences.

/// With this probability a difference is found that is called detectable.
pub const POWER: f64 = 0.8;
/// Two-sided level of a single comparison.
const POWER_LEVEL: f64 = 0.05;

/// The difference that an estimate with this 95 % interval would have found in 80 % of the cases.
pub fn detectable(half_width: f64, batches: u64, degrees_of_freedom: f64, looks: Looks) -> f64 {
    let critical = looks.critical(batches, degrees_of_freedom);
    half_width / critical * (critical + student_t::quantile(POWER, degrees_of_freedom))
}

/// One failure in how many requests would have been found in 80 % of the cases, among `pairs`, if
/// the other side never fails; `None` if not even certain failure would.
pub fn failures_one_in(pairs: u64, looks: Looks) -> Option<f64> {
    let needed = discordant_needed(looks);
    // The mean of a Poisson distribution that reaches this count in 80 %.
    let (mut low, mut high) = (0.0, needed as f64 * 10.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if poisson_at_least(needed, middle) < POWER { low = middle } else { high = middle }
    }
    Some(pairs as f64 / high).filter(|one_in| *one_in >= 1.0)
}

/// Pairs with a failure on one side only that are significant by the sign test: 2 (1/2)^k < 5 %.
fn discordant_needed(looks: Looks) -> u64 {
    (1..64).find(|&k| sign_p(k, 0, looks) < POWER_LEVEL).unwrap_or(64)
}

// Several rounds of the same measurement.
//
// An interval of one round applies to its window only. Differences between windows, such as other
// load on the host, show only between rounds. They are combined into a random-effects mean with
// the interval of Hartung and Knapp.

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
    let (mut low, mut high) = (0.0, sum_of_squares(&values));
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

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
    }

    /// By hand: means 2.5 and 6, variances 5/3 and 20/3, parts 5/12 and 20/12; degrees of freedom
    /// (25/12)^2 / ((5/12)^2/3 + (20/12)^2/3) = 4.411765.
    #[test]
    fn four_runs_on_each_side_are_compared_by_welch() {
        let change = Change::between(&[1.0, 2.0, 3.0, 4.0], &[3.0, 5.0, 7.0, 9.0]).unwrap();
        assert!(change.is_welch());
        assert_near(change.estimate, 3.5);
        assert_near(change.standard_error, (25.0 / 12.0_f64).sqrt());
        assert_near(change.degrees_of_freedom, 625.0 / 425.0 * 3.0);
    }

    /// Squares 2 and 8 over 2 degrees of freedom.
    #[test]
    fn fewer_runs_share_their_spread() {
        let own = Change::between(&[1.0, 3.0], &[4.0, 8.0]).unwrap();
        assert!(!own.is_welch());
        assert_near(own.degrees_of_freedom, 2.0);
        assert_near(own.run_sd, 5.0_f64.sqrt());
        assert_eq!(Change::between(&[1.0], &[2.0]), None);
        assert_eq!(Change::between(&[], &[2.0]), None);
    }

    fn change(estimate: f64) -> Change {
        Change {
            estimate,
            standard_error: 1.0,
            degrees_of_freedom: 10.0,
            run_sd: 1.0,
            base_runs: 6,
            new_runs: 6,
        }
    }

    #[test]
    fn a_gate_has_three_states() {
        // t(0.975, 10) is 2.228.
        for (estimate, margin, worse, p_holm, state) in [
            (0.5, 3.0, Worse::Higher, 0.3, Some(true)),
            (0.9, 3.0, Worse::Higher, 0.3, None),
            (-0.9, 3.0, Worse::Higher, 0.8, Some(true)),
            (-0.9, 3.0, Worse::Lower, 0.2, None),
            (4.0, 3.0, Worse::Higher, 0.01, Some(false)),
            (4.0, 3.0, Worse::Higher, 0.06, None),
            (2.9, 3.0, Worse::Higher, 0.01, None),
            (-4.0, 3.0, Worse::Lower, 0.01, Some(false)),
        ] {
            assert_eq!(judge_gate(&change(estimate), margin, worse, p_holm), state, "{estimate}");
        }
    }

    #[test]
    fn one_sided_p_values_look_in_the_worse_direction() {
        assert_near(change(2.228_139).p_worse(Worse::Higher), 0.025);
        assert_near(change(2.228_139).p_worse(Worse::Lower), 0.975);
        let none = Change { standard_error: 0.0, ..change(0.0) };
        assert_near(none.p_worse(Worse::Higher), 0.5);
    }

    /// t(0.95, 10) = 1.812461, t(0.8, 10) = 0.879058.
    #[test]
    fn what_is_detectable_and_how_many_runs_it_takes() {
        assert_near(change(0.0).detectable(0.05), 1.812_461 + 0.879_058);
        // With 5 + 5 runs t(0.975, 8) + t(0.8, 8) = 2.306 + 0.889 times sqrt(2/5) is 2.02;
        // with 6 + 6 it is (2.228 + 0.879) sqrt(1/3) = 1.79.
        assert_eq!(change(0.0).runs_needed(2.0), Some(6));
        assert_eq!(change(0.0).runs_needed(2.1), Some(5));
        assert_eq!(change(0.0).runs_needed(0.001), None);
    }
}

#[cfg(test)]
mod power_tests {
    use super::*;

    /// Six failures are needed; a mean of 7.906 brings as many in 80 %.
    #[test]
    fn one_failure_in_760_would_be_seen_among_6_000() {
        assert_eq!(discordant_needed(Looks::Once), 6);
        // (k + 1) (1/2)^k: 8/128 of seven, 9/256 of eight.
        assert_eq!(discordant_needed(Looks::Always), 8);
        let found = failures_one_in(6_000, Looks::Once).unwrap();
        assert!((found - 6_000.0 / 7.906).abs() < 0.1, "{found}");
        assert_eq!(failures_one_in(5, Looks::Once), None);
    }

    #[test]
    fn what_can_be_found_is_more_than_the_half_width() {
        // Known variance: (1.96 + 0.8416) / 1.96.
        let found = detectable(1.0, 60, f64::INFINITY, Looks::Once);
        assert!((found - 2.801_585 / 1.959_964).abs() < 1e-5, "{found}");
        // 3.0351 standard errors to both sides, and 0.8416 more.
        let found = detectable(1.0, 60, f64::INFINITY, Looks::Always);
        assert!((found - (1.0 + 0.841_621 / 3.0351)).abs() < 1e-4, "{found}");
    }
}

#[cfg(test)]
mod rounds_tests {
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
