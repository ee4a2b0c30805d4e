//! The verdict on a comparison and its run: the last line and the exit code.

use plimsoll_metrics::{Judgement, RunEnd, RunJudgement, RunSummary};
use plimsoll_rules::{Finding, Level};

use crate::outage;
use crate::result::{Claim, TargetResult, Versus};

/// The verdict and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The user ended the run early.
    Interrupted,
    /// The results must not be used.
    Invalid(String),
    /// A target was down, or a threshold failed.
    Fail(String),
    /// Neither passed nor failed.
    Inconclusive(String),
    /// All thresholds passed, but the targets returned different answers.
    OtherAnswers,
    /// All thresholds passed, or none is set.
    Pass,
}

impl Versus {
    /// The verdict on the comparison and its run. With `allow_invalid`, an invalid comparison can
    /// still pass or fail.
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
            (RunJudgement::Inconclusive(why), ..) | (_, Judgement::Inconclusive(why), _) => {
                Conclusion::Inconclusive(why)
            }
            _ if !self.workload_mismatch.is_empty() => Conclusion::OtherAnswers,
            (_, _, Some(why)) => Conclusion::Inconclusive(why),
            _ => Conclusion::Pass,
        }
    }

    /// Targets that were down, and failed thresholds.
    fn broken(&self) -> Vec<String> {
        let down = self.targets.iter().filter_map(outage::finding).map(|found| sentence(&found));
        let failed = self.thresholds.iter().filter(|found| found.judgement == Judgement::Fail);
        let failed = failed.map(|found| format!("{} {}", found.metric, found.expression));
        down.chain(self.worse_than_margin.iter().cloned()).chain(failed).collect()
    }

    /// The verdict in one line: the main difference, and the validity of the measurement.
    pub(crate) fn last_line(&self, summary: &RunSummary) -> String {
        let bounds =
            self.thresholds.len() + self.compared().len() * usize::from(self.margin.is_some());
        let (word, text) = match self.conclusion(summary, false) {
            Conclusion::Interrupted => ("INTERRUPTED", self.main_difference(summary)),
            Conclusion::Invalid(why) => ("INVALID", why),
            Conclusion::Fail(why) => ("FAIL", why),
            Conclusion::Inconclusive(why) => ("INCONCLUSIVE", why),
            Conclusion::OtherAnswers => {
                let mut shown = self.differences.iter().filter(|one| one.figure == self.headline);
                let marked = shown.any(|one| one.other_answers && one.limited().is_some());
                let times = if marked { "times marked *" } else { "their times" };
                ("DONE", format!("answers differ: {times} are not comparable"))
            }
            Conclusion::Pass if bounds > 0 => ("PASS", "all bounds kept".to_owned()),
            Conclusion::Pass => ("DONE", self.main_difference(summary)),
        };
        let validity = if self.invalid.is_empty() { "valid" } else { "invalid" };
        let ended = match summary.metadata.run.ended {
            RunEnd::Decided => ", ended early because decided",
            _ => "",
        };
        format!("{word}: {text} (measurement: {validity}{ended})")
    }

    /// The difference in failures, else a fault of one target, else the first significant
    /// difference. The run is only the last of several rounds.
    fn main_difference(&self, run: &RunSummary) -> String {
        let held: Vec<_> =
            self.claims.iter().filter(|claim| claim.holds).map(Claim::finding).collect();
        let failures = held.iter().find(|finding| finding.code == 403);
        let overload = self.targets.iter().find_map(TargetResult::overload);
        let mut faults = run.of_level(Level::Warning).filter(|_| self.rounds < 2);
        let fault = faults.find(|one| one.targets.len() == 1 && [2, 3].contains(&(one.code / 100)));
        let main = overload.or(failures).or(fault).or_else(|| held.first());
        match (main, self.nothing_measured()) {
            (Some(finding), _) => sentence(finding),
            (None, Some(unknown)) => unknown,
            (None, None) => format!("no significant difference in {}", self.tested()),
        }
    }
}

/// Strips a finding's text so that it fits inside a line.
fn sentence(finding: &Finding) -> String {
    finding.text().trim_end_matches('.').to_owned()
}
