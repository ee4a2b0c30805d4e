//! Groups of runs, old and new. The run is the unit here, and not the request: what differs from
//! one run to the next is not seen within either.

use crate::interval::Interval;
use crate::moments::{mean, sum_of_squares};
use crate::power::POWER;
use crate::student_t;

/// Runs on each side from which on both spreads are taken from the runs alone.
const RUNS_FOR_WELCH: usize = 4;
/// More runs on each side are not worth asking for.
const MOST_RUNS: u32 = 1_000;
/// Level of a gate.
const LEVEL: f64 = 0.05;

/// The spread between runs of unchanged code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct History {
    /// Standard deviation.
    pub sd: f64,
    /// Degrees of freedom with which it is known; infinite if it was stated.
    pub degrees_of_freedom: f64,
}

impl History {
    /// From groups of earlier runs, each of unchanged code: the spread within groups. `None` if no
    /// group has two.
    pub fn from_groups(groups: &[&[f64]]) -> Option<Self> {
        let freedom: usize = groups.iter().map(|group| group.len().saturating_sub(1)).sum();
        let squares: f64 =
            groups.iter().filter(|group| group.len() > 1).map(|group| sum_of_squares(group)).sum();
        let degrees_of_freedom = freedom as f64;
        (freedom > 0)
            .then(|| Self { sd: (squares / degrees_of_freedom).sqrt(), degrees_of_freedom })
    }
}

/// Where the spread between runs was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpreadFrom {
    /// Each side's own runs (Welch, 1947).
    Welch,
    /// The runs of both sides together.
    Pooled,
    /// These, and earlier runs.
    PooledWithHistory,
    /// Earlier runs alone: each side has one run.
    HistoryAlone,
}

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
    /// Where that is from.
    pub from: SpreadFrom,
    /// Runs of the base.
    pub base_runs: usize,
    /// New runs.
    pub new_runs: usize,
}

/// The direction in which a figure gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// Times, errors.
    Higher,
    /// Rates.
    Lower,
}

/// What a gate came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// No worse than the margin.
    Pass,
    /// Worse, and the estimate is beyond the margin.
    Fail,
    /// Neither is proven.
    Inconclusive,
}

/// Of the mean of at least two runs.
fn variance_of_mean(runs: &[f64]) -> f64 {
    sum_of_squares(runs) / (runs.len() - 1) as f64 / runs.len() as f64
}

impl Change {
    /// Of two groups of runs; `None` if one is empty, or no spread between runs is known.
    pub fn between(base: &[f64], new: &[f64], history: Option<History>) -> Option<Self> {
        if base.is_empty() || new.is_empty() {
            return None;
        }
        let estimate = mean(new) - mean(base);
        if base.len().min(new.len()) >= RUNS_FOR_WELCH {
            return Some(Self::welch(estimate, base, new));
        }
        let (run_sd, degrees_of_freedom, from) = pooled(base, new, history)?;
        let error = run_sd * (1.0 / base.len() as f64 + 1.0 / new.len() as f64).sqrt();
        Some(Self {
            estimate,
            standard_error: error,
            degrees_of_freedom,
            run_sd,
            from,
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
            from: SpreadFrom::Welch,
            base_runs: base.len(),
            new_runs: new.len(),
        }
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

    /// Runs on each side so that unchanged code passes a margin in 80 % of the cases.
    pub fn runs_needed(&self, margin: f64) -> Option<u32> {
        runs_needed(self.run_sd, margin)
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

/// Runs on each side so that unchanged code passes a margin in 80 % of the cases; `None` if that
/// takes more than 1,000.
pub fn runs_needed(run_sd: f64, margin: f64) -> Option<u32> {
    (2..=MOST_RUNS).find(|&runs| {
        let error = run_sd * (2.0 / f64::from(runs)).sqrt();
        let freedom = f64::from(2 * runs - 2);
        let critical = student_t::quantile(1.0 - LEVEL / 2.0, freedom);
        (critical + student_t::quantile(POWER, freedom)) * error <= margin
    })
}

/// Judges a gate. It passes if the worse end of the 95 % interval is within the margin: a pass
/// needs no adjustment for the number of gates, because all must pass. It fails if the change for
/// the worse is significant by `p_holm`, the p value adjusted for all gates, and the estimate is
/// beyond the margin.
pub fn judge_gate(change: &Change, margin: f64, worse: Worse, p_holm: f64) -> GateState {
    let interval = change.interval(1.0 - LEVEL);
    let worst = worse.more(interval.low).max(worse.more(interval.high));
    if worst <= margin {
        GateState::Pass
    } else if p_holm < LEVEL && worse.more(change.estimate) > margin {
        GateState::Fail
    } else {
        GateState::Inconclusive
    }
}

/// Standard deviation between runs, its degrees of freedom, and where it is from.
fn pooled(base: &[f64], new: &[f64], history: Option<History>) -> Option<(f64, f64, SpreadFrom)> {
    let own = (base.len() + new.len() - 2) as f64;
    let squares = sum_of_squares(base) + sum_of_squares(new);
    match history {
        Some(History { sd, degrees_of_freedom }) if degrees_of_freedom.is_infinite() => {
            let from =
                if own > 0.0 { SpreadFrom::PooledWithHistory } else { SpreadFrom::HistoryAlone };
            Some((sd, degrees_of_freedom, from))
        }
        Some(History { sd, degrees_of_freedom }) => {
            let freedom = own + degrees_of_freedom;
            let from =
                if own > 0.0 { SpreadFrom::PooledWithHistory } else { SpreadFrom::HistoryAlone };
            let sd = ((squares + degrees_of_freedom * sd * sd) / freedom).sqrt();
            (freedom > 0.0).then_some((sd, freedom, from))
        }
        None if own > 0.0 => Some(((squares / own).sqrt(), own, SpreadFrom::Pooled)),
        None => None,
    }
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
        let change = Change::between(&[1.0, 2.0, 3.0, 4.0], &[3.0, 5.0, 7.0, 9.0], None).unwrap();
        assert_eq!(change.from, SpreadFrom::Welch);
        assert_near(change.estimate, 3.5);
        assert_near(change.standard_error, (25.0 / 12.0_f64).sqrt());
        assert_near(change.degrees_of_freedom, 625.0 / 425.0 * 3.0);
    }

    /// Squares 2 and 8 over 2 degrees of freedom; with a history of sd 3 over 8: 82 over 10.
    #[test]
    fn fewer_runs_share_their_spread_and_that_of_the_history() {
        let (base, new) = ([1.0, 3.0], [4.0, 8.0]);
        let own = Change::between(&base, &new, None).unwrap();
        assert_eq!(
            (own.from, own.degrees_of_freedom.to_bits()),
            (SpreadFrom::Pooled, 2.0_f64.to_bits())
        );
        assert_near(own.run_sd, 5.0_f64.sqrt());
        let history = History { sd: 3.0, degrees_of_freedom: 8.0 };
        let both = Change::between(&base, &new, Some(history)).unwrap();
        assert_eq!(both.from, SpreadFrom::PooledWithHistory);
        assert_near(both.run_sd, 8.2_f64.sqrt());
        assert_near(both.degrees_of_freedom, 10.0);
        assert_eq!(Change::between(&[1.0], &[2.0], None), None);
        assert_eq!(Change::between(&[], &[2.0], Some(history)), None);
        let single = Change::between(&[1.0], &[2.0], Some(history)).unwrap();
        assert_eq!(single.from, SpreadFrom::HistoryAlone);
        assert_near(single.standard_error, 3.0 * 2.0_f64.sqrt());
        let stated = History { sd: 0.5, degrees_of_freedom: f64::INFINITY };
        assert_near(Change::between(&base, &new, Some(stated)).unwrap().standard_error, 0.5);
    }

    #[test]
    fn a_history_is_the_spread_within_its_groups() {
        // 2 over 1 and 8 over 1.
        let history = History::from_groups(&[&[1.0, 3.0], &[14.0, 18.0], &[99.0]]).unwrap();
        assert_near(history.sd, 5.0_f64.sqrt());
        assert_near(history.degrees_of_freedom, 2.0);
        assert_eq!(History::from_groups(&[&[1.0], &[]]), None);
    }

    fn change(estimate: f64) -> Change {
        Change {
            estimate,
            standard_error: 1.0,
            degrees_of_freedom: 10.0,
            run_sd: 1.0,
            from: SpreadFrom::Pooled,
            base_runs: 6,
            new_runs: 6,
        }
    }

    #[test]
    fn a_gate_has_three_states() {
        // t(0.975, 10) is 2.228.
        for (estimate, margin, worse, p_holm, state) in [
            (0.5, 3.0, Worse::Higher, 0.3, GateState::Pass),
            (0.9, 3.0, Worse::Higher, 0.3, GateState::Inconclusive),
            (-0.9, 3.0, Worse::Higher, 0.8, GateState::Pass),
            (-0.9, 3.0, Worse::Lower, 0.2, GateState::Inconclusive),
            (4.0, 3.0, Worse::Higher, 0.01, GateState::Fail),
            (4.0, 3.0, Worse::Higher, 0.06, GateState::Inconclusive),
            (2.9, 3.0, Worse::Higher, 0.01, GateState::Inconclusive),
            (-4.0, 3.0, Worse::Lower, 0.01, GateState::Fail),
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
        assert_eq!(runs_needed(1.0, 2.0), Some(6));
        assert_eq!(runs_needed(1.0, 2.1), Some(5));
        assert_eq!(runs_needed(1.0, 0.001), None);
    }
}
