//! The summary of a run: its results, validity and limits. `summary.json` holds it, and
//! every report shows it.

use plimsoll_rules::{Finding, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::MetricsError;
use crate::health::InstrumentHealth;
use crate::limit::{BandLevel, Judgement, ThresholdResult};
use crate::results::Results;
use crate::run_metadata::{RunEnd, RunMetadata};
use crate::server_load::ServerLoad;
use crate::shard_part::ShardPart;
use crate::stage_resources::{Bottleneck, ProcessUse, StageResources};
use crate::tasks::{TaskGroup, TaskTally};
use crate::time_facts::TimeFacts;

/// Version of the layout of `summary.json`.
pub const SCHEMA: &str = "plimsoll.summary/3";

/// The summary of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Version of the layout: `plimsoll.summary/3`.
    pub schema: String,
    /// The rules that fired, in the order of the screen. The run is invalid if one of them has the
    /// level `invalid`, and the target failed if one has the level `fail`.
    pub findings: Vec<Finding>,
    /// The limits with their judgements: thresholds, and bands with the level that was reached.
    pub thresholds: Vec<ThresholdResult>,
    /// The run, its stages, scenarios and targets.
    #[serde(flatten)]
    pub metadata: RunMetadata,
    /// The measured results.
    #[serde(flatten)]
    pub results: Results,
    /// The shards of a merged run, in their order; empty for a run of one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardPart>,
    /// The part of the load that shards may have lost, from 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_at_most: f64,
    /// The tasks of agents, by scenario and target. Their requests are counted like all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_tasks: Vec<TaskGroup>,
    /// CPU time and memory of the watched processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUse>,
    /// Resources of this host that each measured stage used: evidence for `plimsoll why`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<StageResources>,
    /// The figures of servers in each measured stage, by their own metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerLoad>,
    /// Changes during the run.
    #[serde(default)]
    pub time_facts: TimeFacts,
    /// The bottleneck; `None` for a run of an earlier version, or without a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Measurements of Plimsoll's own operation.
    pub health: InstrumentHealth,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl RunSummary {
    /// Leaves out the warnings and notes with these codes.
    pub fn ignore(&mut self, codes: &[u16]) {
        self.findings
            .retain(|finding| finding.level < Level::Warning || !codes.contains(&finding.code));
    }

    /// Whether no rule of the level `invalid` fired: the load was as planned, and the headline
    /// figures are known.
    pub fn is_valid(&self) -> bool {
        self.of_level(Level::Invalid).next().is_none()
    }

    /// The findings of a level.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.level == level)
    }

    /// Adds the tasks of agents.
    ///
    /// # Errors
    /// As [`RunSummary::build`].
    pub fn with_tasks(mut self, tasks: &TaskTally) -> Result<Self, MetricsError> {
        self.agent_tasks = tasks.groups(&self.metadata)?;
        Ok(self)
    }
}

/// The result of a run as a whole. If several apply, the first one counts.
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
