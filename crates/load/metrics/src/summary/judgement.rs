//! The judgement of a run as a whole, on which its exit code and its last line rest.

use plimsoll_rules::Level;

use super::RunSummary;
use crate::limit::{BandLevel, Judgement};
use crate::run_metadata::RunEnd;

/// What a run is worth as a whole; of several that apply, the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunJudgement {
    /// The user ended it early.
    Interrupted,
    /// The target failed: a finding of the level `fail`.
    TargetFailed,
    /// Its figures must not be used: a finding of the level `invalid`.
    Invalid,
    /// These limits are broken, in words.
    Failed(Vec<String>),
    /// Neither passed nor failed, for this reason.
    Inconclusive(String),
    /// Every limit passed; there may be none.
    Passed,
}

impl RunSummary {
    /// The judgement. With `accepts_invalid`, an invalid run with data can pass or fail by its
    /// thresholds.
    pub fn judgement(&self, accepts_invalid: bool) -> RunJudgement {
        if self.metadata.run.ended == RunEnd::Interrupted {
            return RunJudgement::Interrupted;
        }
        // Before any doubt about the figures: no figure makes up for a target that fails.
        if self.of_level(Level::Fail).next().is_some() {
            return RunJudgement::TargetFailed;
        }
        // A run without data never passes.
        let is_empty = self.findings.iter().any(|finding| finding.code == 112);
        if is_empty || (!self.is_valid() && !accepts_invalid) {
            return RunJudgement::Invalid;
        }
        let broken = self.broken();
        if !broken.is_empty() {
            return RunJudgement::Failed(broken);
        }
        self.doubt().map_or(RunJudgement::Passed, RunJudgement::Inconclusive)
    }

    /// The limits that failed, in words.
    fn broken(&self) -> Vec<String> {
        let broken = self.thresholds.iter().filter(|found| found.judgement == Judgement::Fail);
        let words = broken.map(|found| match found.level {
            Some(BandLevel::Critical) => format!("{} is critical", found.metric),
            _ => format!("{} {}", found.metric, found.expression),
        });
        words.collect()
    }

    /// Why it does not pass although nothing is broken.
    fn doubt(&self) -> Option<String> {
        self.thresholds.iter().find_map(|found| {
            let why = found.judgement.why_open()?;
            Some(format!("{} {} could not be judged: {why}", found.metric, found.expression))
        })
    }
}
