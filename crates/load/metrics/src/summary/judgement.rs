//! The judgement of a run as a whole, on which its exit code and its last line rest.

use super::RunSummary;
use crate::run_metadata::RunEnd;
use crate::threshold::{BandLevel, BandResult, Judgement, ThresholdResult};
use crate::validity::{Reason, Validity, percent};

/// What a run is worth as a whole; of several that apply, the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunJudgement {
    /// The user ended it early.
    Interrupted,
    /// It was stopped for its errors, or most of its requests failed, in words.
    TooManyErrors(String),
    /// Its figures must not be used, for these reasons.
    Invalid(Vec<Reason>),
    /// These thresholds are broken, and these bands critical, in words.
    Failed(Vec<String>),
    /// Neither passed nor failed, for this reason.
    Inconclusive(String),
    /// Every threshold passed; there may be none.
    Passed,
}

impl RunSummary {
    /// The judgement. With `accepts_invalid`, an invalid run can still pass or fail by its
    /// thresholds.
    pub fn judgement(&self, accepts_invalid: bool) -> RunJudgement {
        if self.metadata.run.ended == RunEnd::Interrupted {
            return RunJudgement::Interrupted;
        }
        // Before any doubt about the figures: no figure makes up for a target that fails.
        if let Some(failure) = self.failure_of_target() {
            return RunJudgement::TooManyErrors(failure);
        }
        if let (Validity::Invalid(reasons), false) = (&self.validity, accepts_invalid) {
            return RunJudgement::Invalid(reasons.clone());
        }
        let broken = self.broken();
        if !broken.is_empty() {
            return RunJudgement::Failed(broken);
        }
        self.doubt().map_or(RunJudgement::Passed, RunJudgement::Inconclusive)
    }

    /// How the target failed, if the run was stopped for that or most of the requests failed. The
    /// targets of a comparison are judged apart.
    fn failure_of_target(&self) -> Option<String> {
        let (metadata, total) = (&self.metadata, &self.results.total);
        let counters = &total.counters;
        let own: u64 = self.health.generator_errors.values().sum();
        let (failed, all) = (counters.failures(), counters.answered());
        let (failed, all) = (failed.saturating_sub(own), all.saturating_sub(own));
        let was_stopped = metadata.run.ended == RunEnd::TooManyErrors;
        let is_allowed = metadata.allow_failures || metadata.targets.len() != 1;
        if !was_stopped && (is_allowed || 2 * failed <= all) {
            return None;
        }
        let share = if all > 0 { percent(failed as f64 / all as f64) } else { "100 %".to_owned() };
        let stopped = if was_stopped { "; stopped early" } else { "" };
        let refused = total.statuses.iter().filter(|(status, _)| (400..500).contains(*status));
        let refused = refused.map(|(status, count)| (*count, format!("status {status}")));
        let errors = total.errors.iter().map(|(class, count)| (*count, class.clone()));
        let kinds = refused.chain(errors).chain([(counters.timed_out, "timed out".to_owned())]);
        let cause = kinds.max().filter(|(count, _)| *count > 0);
        let cause = cause.map_or_else(String::new, |(_, kind)| format!(" ({kind})"));
        Some(format!("{share} of requests failed{cause}{stopped}"))
    }

    /// The thresholds that failed and the bands beyond both bounds, in words.
    fn broken(&self) -> Vec<String> {
        let thresholds = self
            .thresholds
            .iter()
            .filter(|found: &&ThresholdResult| found.judgement == Judgement::Fail);
        let thresholds = thresholds.map(|found| format!("{} {}", found.metric, found.expression));
        let bands =
            self.bands.iter().filter(|found: &&BandResult| found.level == BandLevel::Critical);
        thresholds.chain(bands.map(|found| format!("{} is critical", found.metric))).collect()
    }

    /// Why it does not pass although nothing is broken. A run without data never passes, even
    /// without thresholds; a request that was refused as expected is data.
    fn doubt(&self) -> Option<String> {
        let counters = &self.results.total.counters;
        if counters.completed == 0 && counters.as_expected == 0 {
            return Some("no request was completed outside of warm-up".to_owned());
        }
        self.thresholds
            .iter()
            .find_map(|found: &ThresholdResult| match &found.judgement {
                Judgement::Inconclusive(why) => Some(format!(
                    "{} {} could not be judged: {why}",
                    found.metric, found.expression
                )),
                Judgement::Pass | Judgement::Fail => None,
            })
            .or_else(|| {
                self.bands.iter().find_map(|found: &BandResult| match &found.level {
                    BandLevel::Inconclusive(why) => {
                        Some(format!("the band of {} could not be judged: {why}", found.metric))
                    }
                    BandLevel::Target | BandLevel::Degraded | BandLevel::Critical => None,
                })
            })
    }
}
