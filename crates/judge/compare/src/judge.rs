//! Estimates the change of one figure from repeated runs, and tests whether it is worse than its
//! margin allows.

use plimsoll_metrics::{Judgement, Margin, Worse};
use plimsoll_stats::multiple::holm;
use plimsoll_stats::runs::{Change, judge_gate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;

/// Method of judging gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// By the variation between runs.
    Repeats,
    /// By two numbers, of one old and one new run (`--regress-pct`), without regard to chance.
    Simple,
}

/// One-sided significance level of a change; it corresponds to a two-sided 95 % interval.
const SEEN: f64 = 0.025;

/// Confidence level of the printed intervals.
const LEVEL: f64 = 0.95;

/// Reason for a missing change.
const NO_RATIO: &str = "a value is 0, so the ratio is undefined";

/// One figure of the runs of both sides.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// Value of each old run.
    pub base: Vec<f64>,
    /// Value of each new run.
    pub new: Vec<f64>,
    /// Allowed regression.
    pub margin: Margin,
    /// Direction of a regression.
    pub worse: Worse,
    /// Number of requests of all old and of all new runs, for a share. Shares vary by chance alone,
    /// even if all observed values are equal.
    pub trials: Option<(u64, u64)>,
}

/// Source of the variation between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpreadSource {
    /// The runs of each side (Welch).
    EachSide,
    /// The runs of both sides together.
    BothSides,
}

impl SpreadSource {
    /// The words after "spread between runs: ".
    pub const fn words(self) -> &'static str {
        match self {
            Self::EachSide => "from the runs of each side",
            Self::BothSides => "from the runs of both sides together",
        }
    }
}

/// Result of testing a figure. Changes are relative, or percentage points for a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The change.
    pub change: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// One-sided p value of "not worse", adjusted for all gates (Holm).
    pub p_holm: Option<f64>,
    /// The change that would be detected with a power of 80 %.
    pub detectable: Option<f64>,
    /// Number of runs on each side with which unchanged code passes with a probability of 80 %;
    /// `None` also if it exceeds 1,000.
    pub runs_needed: Option<u32>,
    /// Standard deviation between runs of unchanged code.
    pub run_sd: Option<f64>,
    /// Degrees of freedom of the standard deviation; `None` if it was given.
    pub degrees_of_freedom: Option<f64>,
    /// Source of the standard deviation.
    pub spread: Option<SpreadSource>,
    /// Pass, fail or inconclusive.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl Repeated {
    /// Transforms values for the statistics: to logarithms if the margin is relative, so that a
    /// change is a ratio; `None` if a value has no logarithm.
    pub fn scaled(margin: Margin, values: &[f64]) -> Option<Vec<f64>> {
        match margin {
            Margin::Points(_) => Some(values.to_vec()),
            Margin::Relative(_) => {
                values.iter().map(|value: &f64| (*value > 0.0).then(|| value.ln())).collect()
            }
        }
    }

    fn change(&self) -> Option<Change> {
        let base = Self::scaled(self.margin, &self.base)?;
        let new = Self::scaled(self.margin, &self.new)?;
        let change = Change::between(&base, &new)?;
        Some(match (self.margin, self.trials) {
            (Margin::Points(_), Some((base, new))) => self.at_least_by_chance(change, base, new),
            (Margin::Points(_), None) => change,
            (Margin::Relative(_), _) => at_least_by_rounding(change),
        })
    }

    /// Raises the error of a change of shares to at least the binomial error of this number of
    /// requests.
    /// One request of each kind is added, because zero observed errors do not prove a zero error
    /// rate.
    fn at_least_by_chance(&self, change: Change, base: u64, new: u64) -> Change {
        let (base_trials, new_trials) = (base as f64, new as f64);
        let hits = mean(&self.base) * base_trials + mean(&self.new) * new_trials;
        let share = (hits + 1.0) / (base_trials + new_trials + 2.0);
        let variance = share * (1.0 - share);
        let error = (variance / base_trials.max(1.0) + variance / new_trials.max(1.0)).sqrt();
        if error <= change.standard_error {
            return change;
        }
        let runs = (change.base_runs + change.new_runs) as f64;
        let per_run = ((base_trials + new_trials) / runs).max(1.0);
        Change {
            standard_error: error,
            degrees_of_freedom: f64::INFINITY,
            run_sd: (variance / per_run).sqrt(),
            ..change
        }
    }

    /// The difference of the means, or the ratio of the geometric means.
    fn plain_change(&self) -> Option<f64> {
        let [base, new] = [&self.base, &self.new]
            .map(|values| Self::scaled(self.margin, values).filter(|scaled| !scaled.is_empty()));
        Some(self.shown(mean(&new?) - mean(&base?)))
    }

    /// Converts a difference back from the scale of the statistics.
    fn shown(&self, difference: f64) -> f64 {
        match self.margin {
            Margin::Relative(_) => difference.exp_m1(),
            Margin::Points(_) => difference,
        }
    }

    /// The allowed regression on the scale of the statistics.
    fn scaled_margin(&self) -> f64 {
        match (self.margin, self.worse) {
            (Margin::Relative(share), Worse::Higher) => share.ln_1p(),
            (Margin::Relative(share), Worse::Lower) => -(-share).ln_1p(),
            (Margin::Points(points), _) => points,
        }
    }

    /// Converts a regression back from the scale of the statistics, without a sign.
    fn shown_amount(&self, amount: f64) -> f64 {
        match self.worse {
            Worse::Higher => self.shown(amount).abs(),
            Worse::Lower => self.shown(-amount).abs(),
        }
    }

    fn judged(&self, change: Option<&Change>, p_holm: f64) -> Judged {
        let Some(change) = change else { return self.unjudged() };
        let interval = change.interval(LEVEL);
        let kept = judge_gate(change, self.scaled_margin(), self.worse, p_holm);
        let runs_needed = change.runs_needed(self.scaled_margin());
        Judged {
            change: Some(self.shown(change.estimate)),
            low: Some(self.shown(interval.low)),
            high: Some(self.shown(interval.high)),
            p_holm: Some(p_holm),
            detectable: Some(self.shown_amount(change.detectable(SEEN))),
            runs_needed,
            run_sd: Some(change.run_sd),
            degrees_of_freedom: Some(change.degrees_of_freedom).filter(|df| df.is_finite()),
            spread: Some(if change.is_welch() {
                SpreadSource::EachSide
            } else {
                SpreadSource::BothSides
            }),
            judgement: Judgement::new(kept, || self.why(change, p_holm)),
        }
    }

    fn unjudged(&self) -> Judged {
        let change = self.plain_change();
        let why = match change {
            Some(_) => "one run on each side does not show how much runs vary without any change",
            None => NO_RATIO,
        };
        Judged::without_interval(change, Judgement::Inconclusive(why.to_owned()))
    }

    fn judged_by_two_numbers(&self) -> Judged {
        let change = self.plain_change();
        let (Margin::Relative(margin) | Margin::Points(margin)) = self.margin;
        let kept = change.map(|change| self.worse.more(change) <= margin);
        Judged::without_interval(change, Judgement::new(kept, || NO_RATIO.to_owned()))
    }

    fn why(&self, change: &Change, p_holm: f64) -> String {
        let worse = self.worse.more(change.estimate);
        let (margin, amount) = (self.scaled_margin(), self.shown_amount(worse));
        let needed = change.runs_needed(margin).map_or_else(
            || "more than 1,000 runs on each side would be needed".to_owned(),
            |runs| format!("needs {runs} runs on each side"),
        );
        if worse > margin {
            let amount = format::amount(self.margin, amount);
            return format!("worse by {amount}, but not proven (p {p_holm:.2})");
        }
        let interval = change.interval(LEVEL);
        let most = self.worse.more(interval.low).max(self.worse.more(interval.high));
        let most = format::amount(self.margin, self.shown_amount(most));
        format!("may be worse by up to {most}; {needed}")
    }
}

impl Judged {
    /// The result for a figure whose variation between runs is unknown.
    pub(crate) const fn without_interval(change: Option<f64>, judgement: Judgement) -> Self {
        Self {
            change,
            low: None,
            high: None,
            p_holm: None,
            detectable: None,
            runs_needed: None,
            run_sd: None,
            degrees_of_freedom: None,
            spread: None,
            judgement,
        }
    }

    /// The change with its interval: `-5.0% [-9.1, -0.7]`.
    pub fn shown(&self, margin: Margin) -> String {
        format::change(margin, self.change, self.low.zip(self.high))
    }
}

/// Judges figures together: p values are adjusted for their number (Holm). With the simple rule,
/// each figure is judged by its two numbers.
pub fn judge(figures: &[Result<Repeated, String>], rule: Rule) -> Vec<Judged> {
    let changes: Vec<_> = figures.iter().map(|figure| figure.as_ref().ok()?.change()).collect();
    let p = |figure: &Result<Repeated, String>, change: &Option<Change>| {
        let (figure, change) = figure.as_ref().ok().zip(change.as_ref())?;
        Some(change.p_worse(figure.worse))
    };
    let p = figures.iter().zip(&changes).map(|(figure, change)| p(figure, change));
    let p: Vec<_> = p.map(|p| p.unwrap_or(f64::NAN)).collect();
    let together = figures.iter().zip(&changes).zip(holm(&p));
    together
        .map(|((figure, change), p_holm)| match figure {
            Err(why) => Judged::without_interval(None, Judgement::Inconclusive(why.clone())),
            Ok(figure) if rule == Rule::Simple => figure.judged_by_two_numbers(),
            Ok(figure) => figure.judged(change.as_ref(), p_holm),
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Raises the error of a change of logarithms to at least the rounding error of histograms. Their
/// buckets have a width of up to 0.1 %, so runs may have exactly the same percentile.
pub(crate) fn at_least_by_rounding(change: Change) -> Change {
    const ROUNDING_SD: f64 = 0.001 / 3.464;
    let runs = 1.0 / change.base_runs as f64 + 1.0 / change.new_runs as f64;
    let error = ROUNDING_SD * runs.sqrt();
    Change {
        standard_error: change.standard_error.max(error),
        run_sd: change.run_sd.max(ROUNDING_SD),
        ..change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(base: &[f64], new: &[f64]) -> Repeated {
        Repeated {
            base: base.to_vec(),
            new: new.to_vec(),
            margin: Margin::Relative(0.03),
            worse: Worse::Higher,
            trials: None,
        }
    }

    fn word(judged: &Judged) -> &'static str {
        match judged.judgement {
            Judgement::Pass => "pass",
            Judgement::Fail => "FAIL",
            Judgement::Inconclusive(_) => "inconclusive",
        }
    }

    const EVEN: [f64; 5] = [99.8, 99.9, 100.0, 100.1, 100.2];

    fn times(by: f64) -> Vec<f64> {
        EVEN.iter().map(|value| value * by).collect()
    }

    #[test]
    fn a_gate_has_three_states_in_both_directions() {
        for (by, worse, expected) in [
            (1.0, Worse::Higher, "pass"),
            (1.02, Worse::Higher, "pass"),
            (1.03, Worse::Higher, "inconclusive"),
            (1.05, Worse::Higher, "FAIL"),
            (0.8, Worse::Higher, "pass"),
            (0.8, Worse::Lower, "FAIL"),
            (1.2, Worse::Lower, "pass"),
        ] {
            let figure = Repeated { worse, ..repeated(&EVEN, &times(by)) };
            let judged = &judge(&[Ok(figure)], Rule::Repeats)[0];
            assert_eq!(word(judged), expected, "{by}, {worse:?}: {judged:?}");
            assert!((judged.change.unwrap() - (by - 1.0)).abs() < 1e-9, "{judged:?}");
            let (low, high) = judged.low.zip(judged.high).unwrap();
            assert!(low < by - 1.0 && by - 1.0 < high);
        }
    }

    /// The standard deviation of ln(EVEN) is 0.00158, so the mean difference's is 0.001; with 8
    /// degrees of freedom (2.306 + 0.889) times that is 0.32 %.
    #[test]
    fn what_could_have_been_seen_and_the_runs_needed_follow_from_the_spread() {
        let judged = &judge(&[Ok(repeated(&EVEN, &EVEN))], Rule::Repeats)[0];
        assert!((judged.detectable.unwrap() - 0.0032).abs() < 2e-5, "{judged:?}");
        assert!((judged.run_sd.unwrap() - 0.001_58).abs() < 1e-5, "{judged:?}");
        assert_eq!(judged.runs_needed, Some(2));
        assert_eq!(judged.spread, Some(SpreadSource::EachSide));
    }

    #[test]
    fn single_runs_are_inconclusive() {
        let judged = &judge(&[Ok(repeated(&[100.0], &[110.0]))], Rule::Repeats)[0];
        assert_eq!((word(judged), judged.low), ("inconclusive", None));
        assert!((judged.change.unwrap() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_figure_of_zero_has_no_ratio() {
        let judged = &judge(&[Ok(repeated(&[0.0, 1.0], &[1.0, 1.0]))], Rule::Repeats)[0];
        assert_eq!((word(judged), judged.change), ("inconclusive", None));
    }

    /// A change of exactly the margin passes; a share of 0 has a difference but no ratio.
    #[test]
    fn the_simple_rule_compares_two_numbers() {
        for (base, new, worse, margin, expected) in [
            (100.0, 109.9, Worse::Higher, Margin::Relative(0.1), "pass"),
            (100.0, 110.1, Worse::Higher, Margin::Relative(0.1), "FAIL"),
            (100.0, 50.0, Worse::Higher, Margin::Relative(0.1), "pass"),
            (100.0, 90.1, Worse::Lower, Margin::Relative(0.1), "pass"),
            (100.0, 89.9, Worse::Lower, Margin::Relative(0.1), "FAIL"),
            (100.0, 0.1, Worse::Lower, Margin::Relative(1.5), "pass"),
            (0.0, 1.0, Worse::Higher, Margin::Relative(0.1), "inconclusive"),
            (0.0, 0.000_9, Worse::Higher, Margin::Points(0.001), "pass"),
            (0.0, 0.001_1, Worse::Higher, Margin::Points(0.001), "FAIL"),
        ] {
            let figure = Repeated { margin, worse, ..repeated(&[base], &[new]) };
            let judged = &judge(&[Ok(figure)], Rule::Simple)[0];
            assert_eq!(word(judged), expected, "{base} {new} {worse:?} {margin:?}");
        }
    }

    /// No error in two times 5 runs of 100 requests proves nothing below 0.1 points. With a million
    /// requests it does: 2e-6 +- 1.96 sqrt(2 x 5e-7
    /// 500,000).
    #[test]
    fn shares_are_never_more_certain_than_their_number_of_requests() {
        for (trials, expected) in [(500, "inconclusive"), (500_000, "pass")] {
            let figure = Repeated {
                margin: Margin::Points(0.001),
                trials: Some((trials, trials)),
                ..repeated(&[0.0; 5], &[0.0; 5])
            };
            let judged = &judge(&[Ok(figure)], Rule::Repeats)[0];
            assert_eq!(word(judged), expected, "{trials}: {judged:?}");
        }
    }

    #[test]
    fn p_values_are_adjusted_for_the_number_of_gates() {
        let of = |count| judge(&vec![Ok(repeated(&EVEN, &times(1.05))); count], Rule::Repeats);
        let (one, many) = (of(1), of(4));
        let (alone, together) = (one[0].p_holm.unwrap(), many[0].p_holm.unwrap());
        assert!((together / alone - 4.0).abs() < 1e-6, "{alone} {together}");
    }
}
