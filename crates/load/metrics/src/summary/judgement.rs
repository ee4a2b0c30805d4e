//! The judgement of a run as a whole, on which its exit code and its last line rest.

use super::RunSummary;
use crate::run_metadata::RunEnd;
use crate::threshold::{BandLevel, BandResult, Judgement, ThresholdResult};
use crate::validity::{Reason, Validity};

/// What a run is worth as a whole; of several that apply, the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunJudgement {
    /// The user ended it early.
    Interrupted,
    /// It was stopped: the bound on the share of requests without a good answer was broken.
    TooManyErrors,
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
        match self.metadata.run.ended {
            RunEnd::Interrupted => return RunJudgement::Interrupted,
            RunEnd::TooManyErrors => return RunJudgement::TooManyErrors,
            RunEnd::Complete | RunEnd::Decided | RunEnd::Aborted | RunEnd::Unfinished => {}
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
