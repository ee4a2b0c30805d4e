//! The verdict on a comparison and the run that made it: its last line, and its exit code.

use plimsoll_metrics::{Judgement, RunEnd, RunJudgement, RunSummary};
use plimsoll_rules::{Finding, Level};

use crate::outage;
use crate::result::Versus;

/// The verdict, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The user ended the run early.
    Interrupted,
    /// The figures must not be used.
    Invalid(String),
    /// A target was down, or a bound is broken.
    Fail(String),
    /// Neither passed nor failed.
    Inconclusive(String),
    /// Nothing is broken, but the targets returned different answers.
    OtherAnswers,
    /// Every bound is kept; there may be none.
    Pass,
}

impl Versus {
    /// The verdict on the comparison and on its run. With `allow_invalid`, an invalid comparison
    /// can still pass or fail.
    pub fn conclusion(&self, summary: &RunSummary, allow_invalid: bool) -> Conclusion {
        let run = summary.judgement(true);
        if run == RunJudgement::Interrupted {
            return Conclusion::Interrupted;
        }
        if let Some(why) = self.invalid.first().filter(|_| !allow_invalid) {
            return Conclusion::Invalid(why.clone());
        }
        let bounds = self.judgement_of_bounds();
        let mut broken = match &run {
            RunJudgement::TargetFailed => {
                summary.of_level(Level::Fail).map(Finding::text).collect()
            }
            RunJudgement::Failed(bounds) => bounds.clone(),
            _ => Vec::new(),
        };
        if bounds == Judgement::Fail {
            broken.extend(self.broken());
        }
        if !broken.is_empty() {
            return Conclusion::Fail(broken.join(", "));
        }
        match (run, bounds, self.nothing_measured()) {
            (RunJudgement::Inconclusive(why), ..)
            | (_, Judgement::Inconclusive(why), _)
            | (_, _, Some(why)) => Conclusion::Inconclusive(why),
            _ if !self.workload_mismatch.is_empty() => Conclusion::OtherAnswers,
            _ => Conclusion::Pass,
        }
    }

    /// Targets that were down, and bounds that are broken.
    fn broken(&self) -> Vec<String> {
        let down = self.targets.iter().filter_map(outage::finding).map(|found| found.text());
        let failed = self.thresholds.iter().filter(|found| found.judgement == Judgement::Fail);
        let failed = failed.map(|found| format!("{} {}", found.metric, found.expression));
        down.chain(self.worse_than_margin.iter().cloned()).chain(failed).collect()
    }

    /// The verdict as a line.
    pub(crate) fn last_line(&self, summary: &RunSummary) -> String {
        const VALID: &str = "VALID: the differences describe the targets";
        let bounds =
            self.thresholds.len() + self.compared().len() * usize::from(self.margin.is_some());
        match self.conclusion(summary, false) {
            Conclusion::Interrupted => "INTERRUPTED: results up to the interruption".to_owned(),
            Conclusion::Invalid(why) => format!("INVALID: {why}"),
            Conclusion::Fail(why) => format!("FAIL: {why}"),
            Conclusion::Inconclusive(why) => format!("INCONCLUSIVE: {why}"),
            Conclusion::OtherAnswers => {
                "VALID load, but answers differ: times marked * are not comparable".to_owned()
            }
            Conclusion::Pass if bounds > 0 => format!("PASS: every bound is kept. {VALID}"),
            Conclusion::Pass if summary.metadata.run.ended == RunEnd::Decided => {
                format!("{VALID}; ended early, as it was decided")
            }
            Conclusion::Pass => VALID.to_owned(),
        }
    }
}
