//! What is known of a run beside its blocks.

use plimsoll_measure::{Block, Nanos};
use plimsoll_metrics::LoadModel;
use plimsoll_rules::Finding;
use plimsoll_stats::Looks;
use serde::{Deserialize, Serialize};

use crate::role::Role;
use crate::stated::Stated;
use crate::streams::Streams;
use crate::threshold::AddedThreshold;

/// A run on several targets. A shard keeps them in its folder, without what the plan says again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// The targets, in the order of the turns of a block.
    pub targets: Vec<TargetFacts>,
    /// When the targets carry out a block.
    pub schedule: Schedule,
    /// The stages, in the order of their ids.
    pub stages: Vec<StageFacts>,
    /// Names of the scenarios, in the order of their ids.
    pub scenarios: Vec<String>,
    /// Blocks that were planned.
    pub planned_blocks: u64,
    /// Blocks per second, where the measured stages are open.
    pub rate: Option<f64>,
    /// Length of the measured stages, in seconds.
    pub duration_s: f64,
    /// How long each target is loaded in them, in seconds.
    pub loaded_s: f64,
    /// Whether seconds were left out by sampling: one in so many was kept.
    pub one_in: u32,
    /// Whether generator and targets share a host.
    pub same_host: bool,
    /// Thresholds on what a target adds.
    #[serde(skip)]
    pub thresholds: Vec<AddedThreshold>,
    /// How much worse than the best a target may be, as a share of the best one's median.
    pub margin: Option<f64>,
    /// [`Looks::Always`] where the run may end as soon as it is decided.
    #[serde(skip)]
    pub looks: Looks,
    /// When that was, after the run's start: blocks that start later are not judged.
    pub decided_at: Option<Nanos>,
    /// Whether the targets are variants of the reference, like a gateway with a layer and without:
    /// each is compared with the reference alone, and its CPU time, too.
    pub variants: bool,
}

impl Facts {
    /// Whether the requests of a block were sent by virtual users: a faster target has more turns
    /// than others, and those lack nothing.
    pub(crate) fn is_closed(&self, block: &Block) -> bool {
        let stage = self.stages.get(block.stage.index());
        stage.is_some_and(|stage| stage.model == LoadModel::Closed)
    }

    /// The target that all others are compared with.
    pub fn reference(&self) -> usize {
        self.targets.iter().position(|target| target.role == Role::Reference).unwrap_or_default()
    }

    /// The reference, loaded a second time.
    pub fn control(&self) -> Option<usize> {
        self.targets.iter().position(|target| target.role == Role::Control)
    }

    /// The name of a target.
    pub(crate) fn name(&self, target: usize) -> &str {
        &self.targets[target].name
    }

    /// The targets of the same address, this one among them: one process answers them all.
    pub(crate) fn of_same_process(&self, target: usize) -> Vec<usize> {
        let own = address(&self.targets[target].url);
        (0..self.targets.len())
            .filter(|index: &usize| {
                *index == target || !own.is_empty() && address(&self.targets[*index].url) == own
            })
            .collect()
    }

    /// The targets that are compared with the reference and with each other.
    pub fn compared(&self) -> Vec<usize> {
        let reference = self.reference();
        (0..self.targets.len())
            .filter(|&index: &usize| {
                index != reference && self.targets[index].role != Role::Control
            })
            .collect()
    }
}

/// Scheme and authority of a URL.
fn address(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find(['/', '?']).map_or(url.len(), |end| authority + end);
    &url[..end]
}

/// A target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// Model asked for; empty for plain HTTP.
    pub model: String,
    /// How it is spoken to.
    pub protocol: String,
    /// What it is compared with.
    pub role: Role,
    /// Whether it is the upstream itself.
    #[serde(default)]
    pub direct: bool,
    /// Readings of its CPU time in their order; empty if it was not watched.
    pub cpu: Vec<CpuReading>,
    /// CPU time per request in microseconds, where only the total is known.
    pub cpu_us_per_request: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub memory_bytes: Option<u64>,
    /// The size of its image in bytes, as the user says.
    #[serde(default)]
    pub image_bytes: Option<u64>,
    /// How long its start takes, as the user says.
    #[serde(default)]
    pub startup: Option<Nanos>,
    /// What it states of its own time in the headers of its answers.
    pub stated: Option<Stated>,
    /// Turns that it completed per second while it was loaded.
    pub throughput: Option<f64>,
    /// How it differs from the reference before the load.
    pub setup: Vec<Finding>,
    /// Set if it was taken out of the run.
    pub taken_out: Option<TakenOut>,
    /// What it said when requests to it failed.
    pub failure: Option<String>,
    /// How its streams came.
    pub streams: Option<Streams>,
}

/// A target that was taken out of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOut {
    /// When, after the run's start.
    pub at: Nanos,
    /// Why.
    pub why: String,
}

/// The CPU time of a target at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReading {
    /// When, after the run's start.
    pub at: Nanos,
    /// CPU time so far, of all its threads and processes.
    pub cpu: Nanos,
}

/// When the targets carry out the turns of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// One after another, this far apart.
    Spread {
        /// Between two intended starts.
        gap: Nanos,
    },
    /// At the same instant.
    #[default]
    Together,
    /// Each target alone, in windows that take turns.
    Turns,
}

impl Schedule {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spread { .. } => "spread",
            Self::Together => "together",
            Self::Turns => "turns",
        }
    }
}

/// A stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StageFacts {
    /// Its name.
    pub name: String,
    /// Open or closed.
    pub model: LoadModel,
}
