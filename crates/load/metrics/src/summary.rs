//! The summary of a run: its results, validity and limits. `summary.json` holds it, and
//! every report shows it.

mod judgement;

use plimsoll_rules::{Finding, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::MetricsError;
use crate::health::InstrumentHealth;
use crate::limit::ThresholdResult;
use crate::process_use::ProcessUse;
use crate::results::Results;
use crate::run_metadata::RunMetadata;
use crate::shard_part::ShardPart;
use crate::stage_resources::{Bottleneck, StageResources};
use crate::tasks::{TaskGroup, TaskTally};
use crate::time_facts::TimeFacts;

pub use judgement::RunJudgement;

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
    /// What each measured stage used of this host: evidence for `plimsoll why`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<StageResources>,
    /// What changed during the run.
    #[serde(default)]
    pub time_facts: TimeFacts,
    /// What limited the load; `None` for a run of an earlier version, or one that left no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Plimsoll's measurements of itself.
    pub health: InstrumentHealth,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
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
