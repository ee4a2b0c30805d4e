//! The verdict on a comparison and the run that made it: its last line, and its exit code.

use plimsoll_metrics::{Judgement, RunEnd, RunJudgement, RunSummary};
use plimsoll_rules::{Finding, Level};

use crate::outage;
use crate::result::{Claim, Versus};

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
            RunJudgement::TargetFailed => summary.of_level(Level::Fail).map(sentence).collect(),
            RunJudgement::Failed(bounds) => bounds.clone(),
            _ => Vec::new(),
        };
        if bounds == Judgement::Fail {
            broken.extend(self.broken());
        }
        if !broken.is_empty() {
            return Conclusion::Fail(broken.join("; "));
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
        let down = self.targets.iter().filter_map(outage::finding).map(|found| sentence(&found));
        let failed = self.thresholds.iter().filter(|found| found.judgement == Judgement::Fail);
        let failed = failed.map(|found| format!("{} {}", found.metric, found.expression));
        down.chain(self.worse_than_margin.iter().cloned()).chain(failed).collect()
    }

    /// The verdict as a line: what happened to the targets, and whether the measurement is good.
    pub(crate) fn last_line(&self, summary: &RunSummary) -> String {
        let bounds =
            self.thresholds.len() + self.compared().len() * usize::from(self.margin.is_some());
        let (word, text) = match self.conclusion(summary, false) {
            Conclusion::Interrupted => ("INTERRUPTED", self.main_difference()),
            Conclusion::Invalid(why) => ("INVALID", why),
            Conclusion::Fail(why) => ("FAIL", why),
            Conclusion::Inconclusive(why) => ("INCONCLUSIVE", why),
            Conclusion::OtherAnswers => {
                ("DONE", "answers differ: times marked * are not comparable".to_owned())
            }
            Conclusion::Pass if bounds > 0 => ("PASS", "every bound is kept".to_owned()),
            Conclusion::Pass => ("DONE", self.main_difference()),
        };
        let validity = if self.invalid.is_empty() { "valid" } else { "invalid" };
        let ended = match summary.metadata.run.ended {
            RunEnd::Decided => ", ended early, as it was decided",
            _ => "",
        };
        format!("{word}: {text} (measurement: {validity}{ended})")
    }

    /// More failures, else the first difference that holds.
    fn main_difference(&self) -> String {
        let held: Vec<_> =
            self.claims.iter().filter(|claim| claim.holds).map(Claim::finding).collect();
        let failures = held.iter().find(|finding| finding.code == 403);
        failures
            .or_else(|| held.first())
            .map_or_else(|| "no significant difference".to_owned(), sentence)
    }
}

/// The text of a finding as a part of a line.
fn sentence(finding: &Finding) -> String {
    finding.text().trim_end_matches('.').to_owned()
}
