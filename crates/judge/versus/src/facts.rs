//! Facts about a run other than its blocks.

use plimsoll_measure::Nanos;
use plimsoll_metrics::LoadModel;
use plimsoll_rules::Finding;
use plimsoll_stats::Looks;
use serde::{Deserialize, Serialize};

use crate::result::{Role, Stated};
use crate::streams::Streams;
use crate::threshold::AddedThreshold;

/// A run with several targets. A shard stores them in its folder, without the facts that the plan
/// repeats.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the run.
    pub name: String,
    /// The targets, in the order of their turns in a block.
    pub targets: Vec<TargetFacts>,
    /// How the targets share the time.
    pub schedule: Schedule,
    /// The stages, ordered by id.
    pub stages: Vec<StageFacts>,
    /// Names of the scenarios, ordered by id.
    pub scenarios: Vec<String>,
    /// Number of planned blocks.
    pub planned_blocks: u64,
    /// Blocks per second, if the measured stages are open.
    pub rate: Option<f64>,
    /// Length of the measured stages, in seconds.
    pub duration_s: f64,
    /// Time in seconds for which each target is loaded in them.
    pub loaded_s: f64,
    /// Sampling factor: one second in this many was kept.
    pub one_in: u32,
    /// Whether generator and targets share a host.
    pub same_host: bool,
    /// Thresholds on overhead.
    #[serde(skip)]
    pub thresholds: Vec<AddedThreshold>,
    /// Margin: by how much a target may be worse than the best one, as a share of the best one's
    /// median.
    pub margin: Option<f64>,
    /// [`Looks::Always`] if the run may end as soon as it is decided.
    #[serde(skip)]
    pub looks: Looks,
    /// Time of the decision since the run's start: later blocks are ignored.
    pub decided_at: Option<Nanos>,
    /// Whether the targets are variants of the reference, such as a gateway with and without a
    /// layer. Then each is compared with the reference alone, CPU time included.
    pub variants: bool,
}

impl Facts {
    /// Index of the target that all others are compared with.
    pub fn reference(&self) -> usize {
        self.targets.iter().position(|target| target.role == Role::Reference).unwrap_or_default()
    }

    /// Index of the control: the reference, loaded a second time.
    pub fn control(&self) -> Option<usize> {
        self.targets.iter().position(|target| target.role == Role::Control)
    }

    /// Name of a target.
    pub(crate) fn name(&self, target: usize) -> &str {
        &self.targets[target].name
    }

    /// The targets with the same address, including this one: one process serves them all.
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

/// The scheme and authority of a URL.
fn address(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find(['/', '?']).map_or(url.len(), |end| authority + end);
    &url[..end]
}

/// Facts about one target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Name of the target.
    pub name: String,
    /// URL of the target.
    pub url: String,
    /// Requested model; empty for plain HTTP.
    pub model: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Part in the comparison.
    pub role: Role,
    /// Whether it is the upstream.
    #[serde(default)]
    pub direct: bool,
    /// Readings of the CPU time in chronological order; empty if the target was not monitored.
    pub cpu: Vec<CpuReading>,
    /// CPU time per request in microseconds, if only the total is known.
    pub cpu_us_per_request: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub memory_bytes: Option<u64>,
    /// Times that the target reports in its response headers.
    pub stated: Option<Stated>,
    /// Completed turns per second while the target was loaded, of virtual users.
    pub throughput: Option<f64>,
    /// Differences from the reference found before the load.
    pub setup: Vec<Finding>,
    /// Set if the target was dropped from the run.
    pub taken_out: Option<TakenOut>,
    /// Error message of its failed requests.
    pub failure: Option<String>,
    /// Shapes of its streams.
    pub streams: Option<Streams>,
}

/// A target that was dropped from the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOut {
    /// Time since the run's start.
    pub at: Nanos,
    /// Reason for dropping it.
    pub why: String,
}

/// CPU time of a target at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReading {
    /// Time since the run's start.
    pub at: Nanos,
    /// CPU time so far, of all threads and processes of the target.
    pub cpu: Nanos,
}

/// How the targets of a comparison share the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// One after another, with a gap.
    Spread {
        /// Time between two intended starts.
        gap: Nanos,
    },
    /// At the same instant.
    #[default]
    Together,
    /// Each target alone, in alternating windows.
    Turns,
}

impl Schedule {
    /// Name in files.
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
    /// Name of the stage.
    pub name: String,
    /// Open or closed.
    pub model: LoadModel,
}
