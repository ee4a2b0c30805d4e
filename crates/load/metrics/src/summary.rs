//! The summary of a run: its results, validity, thresholds and bands. `summary.json` holds it, and
//! every report shows it.

mod cache_hits;
mod evidence;
mod interpretation;
mod judgement;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::MetricsError;
use crate::health::InstrumentHealth;
use crate::process_use::ProcessUse;
use crate::results::Results;
use crate::run_metadata::RunMetadata;
use crate::shard_part::ShardPart;
use crate::snapshot::Snapshot;
use crate::stage_resources::{Bottleneck, StageResources};
use crate::tasks::{TaskGroup, TaskTally};
use crate::threshold::{Band, BandResult, Threshold, ThresholdResult};
use crate::validity::{Assessment, Reason, Validity, judge_health};

pub use judgement::RunJudgement;

/// Version of the layout of `summary.json`.
pub const SCHEMA: &str = "plimsoll.summary/2";

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Version of the layout: `plimsoll.summary/2`.
    pub schema: String,
    /// Whether Plimsoll kept up, so that the figures describe the target.
    pub validity: Validity,
    /// Limits of the measurement that a reader must know, even if the run is valid.
    #[serde(default)]
    pub warnings: Vec<Reason>,
    /// The thresholds with their judgements.
    pub thresholds: Vec<ThresholdResult>,
    /// The bands with the level that the run reached in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<BandResult>,
    /// Warning signs in bands and policy decisions, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interpretation: Vec<String>,
    /// The run, its stages, scenarios and targets.
    #[serde(flatten)]
    pub metadata: RunMetadata,
    /// The measured results.
    #[serde(flatten)]
    pub results: Results,
    /// The shards of a merged run, in their order; empty for a run of one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardPart>,
    /// The tasks of agents, by scenario and target. Their requests are counted like all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_tasks: Vec<TaskGroup>,
    /// CPU time and memory of the watched processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUse>,
    /// What each measured stage used of this host: evidence for `plimsoll why`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<StageResources>,
    /// What limited the load; `None` for a run of an earlier version, or one that left no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Plimsoll's measurements of itself.
    pub health: InstrumentHealth,
}

impl RunSummary {
    /// Builds the summary of a run: adds up the counts, judges the instrument, then the thresholds.
    ///
    /// # Errors
    /// [`MetricsError::EncodeHistogram`] if a histogram holds more counts than 63 bits.
    pub fn build(
        metadata: RunMetadata,
        mut health: InstrumentHealth,
        snapshot: &Snapshot,
        thresholds: &[Threshold],
    ) -> Result<Self, MetricsError> {
        let whole = snapshot.total(|_| true);
        health.observe(&whole);
        let evidence = evidence::collect(&metadata, snapshot, &whole);
        let results = Results::roll_up(&metadata, snapshot)?;
        let Assessment { validity, mut warnings } = judge_health(&health, &evidence, &results);
        warnings.extend(cache_hits::warning(&metadata, snapshot));
        let thresholds = thresholds.iter().map(|threshold| threshold.judge(&results)).collect();
        Ok(Self {
            schema: SCHEMA.to_owned(),
            validity,
            warnings,
            thresholds,
            bands: Vec::new(),
            interpretation: interpretation::warning_signs(&metadata, &results, &[]),
            metadata,
            results,
            shards: Vec::new(),
            agent_tasks: Vec::new(),
            processes: Vec::new(),
            resources: Vec::new(),
            bottleneck: None,
            health,
        })
    }

    /// Adds the tasks of agents.
    ///
    /// # Errors
    /// As [`RunSummary::build`].
    pub fn with_tasks(mut self, tasks: &TaskTally) -> Result<Self, MetricsError> {
        self.agent_tasks = tasks.groups(&self.metadata)?;
        Ok(self)
    }

    /// Adds the level that the run reached in these bands.
    #[must_use]
    pub fn with_bands(mut self, bands: &[Band]) -> Self {
        self.bands = bands.iter().map(|band| band.judge(&self.results)).collect();
        self.interpretation =
            interpretation::warning_signs(&self.metadata, &self.results, &self.bands);
        self
    }
}
