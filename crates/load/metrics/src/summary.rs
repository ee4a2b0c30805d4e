//! The merged result of a run: what `summary.json` holds and every report shows.

mod build;
mod evidence;
mod group;
mod interpretation;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounting::Accounting;
use crate::catalog::Counters;
use crate::environment::Environment;
use crate::facts::{Expectation, RunInfo, StageInfo, TargetInfo};
use crate::health::InstrumentHealth;
use crate::process::ProcessUse;
use crate::threshold::{BandResult, Scope, ThresholdResult};
use crate::validity::{Reason, Validity};

pub use group::{DistributionSummary, Group};

/// Version of the layout of `summary.json`.
pub const SCHEMA: &str = "plimsoll.summary/1";

/// The merged result of a run. All groups but those of warm-up stages leave warm-up out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run.
    pub run: RunInfo,
    /// Is the instrument to be believed?
    pub validity: Validity,
    /// What a reader must know of the instrument, even where the run is valid.
    #[serde(default)]
    pub warnings: Vec<Reason>,
    /// The thresholds and what became of them.
    pub thresholds: Vec<ThresholdResult>,
    /// The bands and where the run stands in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<BandResult>,
    /// What the bands and policy decisions mean, one sentence each, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interpretation: Vec<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Stages, in order.
    pub stages: Vec<StageInfo>,
    /// Names of the scenarios, in order.
    pub scenarios: Vec<String>,
    /// What they expect, in the same order; empty where none expects anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Labels of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Targets, in order.
    #[serde(alias = "lanes")]
    pub targets: Vec<TargetInfo>,
    /// The whole run without warm-up.
    pub total: Group,
    /// One per stage, warm-up stages too.
    pub by_stage: Vec<Group>,
    /// One per scenario, without warm-up.
    pub by_scenario: Vec<Group>,
    /// One per category of scenarios, by name, without warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_category: Vec<Group>,
    /// One per target, without warm-up.
    #[serde(alias = "by_lane")]
    pub by_target: Vec<Group>,
    /// One per stage x scenario x target in which anything was scheduled.
    pub cells: Vec<Group>,
    /// What the watched processes used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUse>,
    /// What the instrument measured of itself.
    pub health: InstrumentHealth,
    /// The generator's machine.
    pub environment: Environment,
}

impl RunSummary {
    /// The group that a scope names. A stage is named by its name, or by its number counted from 1.
    pub fn group(&self, scope: &Scope) -> Option<&Group> {
        match scope {
            Scope::Run => Some(&self.total),
            Scope::Stage(name) => named(&self.by_stage, |g| g.stage.as_deref(), name)
                .or_else(|| self.by_stage.get(name.parse::<usize>().ok()?.checked_sub(1)?)),
            Scope::Scenario(name) => named(&self.by_scenario, |g| g.scenario.as_deref(), name),
            Scope::Category(name) => named(&self.by_category, |g| g.category.as_deref(), name),
            Scope::Target(name) => named(&self.by_target, |g| g.target.as_deref(), name),
        }
    }

    /// The accounting of the whole run, warm-up included.
    pub fn accounting(&self) -> Accounting {
        let mut counters = Counters::default();
        for group in &self.by_stage {
            counters.merge(&group.counters);
        }
        Accounting::from(&counters)
    }
}

fn named<'a>(
    groups: &'a [Group],
    label: impl Fn(&Group) -> Option<&str>,
    name: &str,
) -> Option<&'a Group> {
    groups.iter().find(|group| label(group) == Some(name))
}
