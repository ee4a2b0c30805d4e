//! The measured results of a run: groups of requests, rolled up from what was counted.

mod count_limits;
pub(crate) mod distribution_summary;
mod group;
mod limited;
mod lost_rate;
mod rollup;
mod server_timing;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Counters;
use crate::scope::Scope;

pub use distribution_summary::{DistributionSummary, Middle};
pub use group::{Group, TokenRate};
pub use limited::LimitedFigure;
pub use server_timing::ServerTiming;

/// The measured results of a run. All groups but those of warm-up stages leave warm-up out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
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
    pub by_target: Vec<Group>,
    /// One per operation of tool servers and agents, without warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_operation: Vec<Group>,
    /// One per stage x scenario x target, and per operation where there are any, in which anything
    /// was scheduled.
    pub cells: Vec<Group>,
}

impl Results {
    /// The group that a scope names. A stage is named by its name, or by its number counted from 1.
    pub fn group(&self, scope: &Scope) -> Option<&Group> {
        match scope {
            Scope::Run => Some(&self.total),
            Scope::Stage(name) => find(&self.by_stage, |g| g.stage.as_deref(), name)
                .or_else(|| self.by_stage.get(name.parse::<usize>().ok()?.checked_sub(1)?)),
            Scope::Scenario(name) => find(&self.by_scenario, |g| g.scenario.as_deref(), name),
            Scope::Category(name) => find(&self.by_category, |g| g.category.as_deref(), name),
            Scope::Target(name) => find(&self.by_target, |g| g.target.as_deref(), name),
            Scope::Operation(name) => find(&self.by_operation, |g| g.operation.as_deref(), name),
        }
    }

    /// The counters of the whole run, warm-up included.
    pub fn accounting(&self) -> Counters {
        let mut counters = Counters::default();
        for group in &self.by_stage {
            counters.merge(&group.counters);
        }
        counters
    }
}

fn find<'a>(
    groups: &'a [Group],
    label: impl Fn(&Group) -> Option<&str>,
    name: &str,
) -> Option<&'a Group> {
    groups.iter().find(|group| label(group) == Some(name))
}
