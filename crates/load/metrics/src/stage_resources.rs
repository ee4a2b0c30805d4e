//! Resources of the host that a stage used: the evidence for its bottleneck.

use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resources of this host that a measured stage used. Every figure is the difference between a
/// reading at the start of the stage and one at its end. Figures that the kernel does not provide
/// are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageResources {
    /// Name of the stage.
    pub stage: String,
    /// Time between the two readings, in seconds.
    pub wall_s: f64,
    /// The watched processes, the one that listens at the target's address where it is on this
    /// host, and Plimsoll itself.
    pub processes: Vec<ProcessLoad>,
    /// All CPUs of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostLoad>,
}

/// A process and its descendants in a stage.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessLoad {
    /// Its name, as given by the user; `gateway` for the one that was found at the target's address
    /// and that nobody named.
    pub name: String,
    /// Its process id; 0 on another host.
    pub pid: u32,
    /// For a process on another host: the metrics page of its figures, and the metric.
    pub page: Option<String>,
    /// Its place in the run.
    pub place: ProcessPlace,
    /// CPU time divided by time.
    pub cores: f64,
    /// Time for which its threads were ready to run and waited for a CPU, divided by time: a sum
    /// over threads. The time for which a CPU quota stopped them is part of it. Threads that ended
    /// meanwhile are missing.
    pub waiting: Option<f64>,
    /// Its busiest threads, the busiest first, at most 16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadLoad>,
    /// CPUs that it may run on.
    pub cpus: Option<u32>,
    /// The narrowest CPU quota of its control group and of those above it.
    pub quota: Option<QuotaLoad>,
    /// Share of the time in which a task of its control group waited for a CPU (`cpu.pressure`).
    pub pressure: Option<f64>,
    /// Whether it ended before the stage did, or its page of metrics was unreadable for most of the
    /// stage; the figures are then missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// Place of a process in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessPlace {
    /// It is Plimsoll itself.
    Plimsoll,
    /// It listens at the target's address.
    Target,
    /// It was named, and nothing else is known of it.
    #[default]
    Elsewhere,
}

/// A thread in a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadLoad {
    /// Its name, as the program gave it.
    pub name: String,
    /// CPU time divided by time.
    pub cores: f64,
    /// Time for which it was ready to run and waited for a CPU, divided by time.
    pub waiting: f64,
}

/// A CPU quota of a control group in a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuotaLoad {
    /// CPUs that it allows.
    pub cpus: f64,
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Part of these in which the quota throttled it.
    pub throttled_periods: u64,
    /// For how long, in seconds, summed over CPUs.
    pub throttled_s: f64,
    /// Whether Plimsoll runs under the same quota.
    pub with_generator: bool,
}

/// The CPUs of the host in a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostLoad {
    /// CPUs that are online.
    pub cpus: u32,
    /// Share of their time in which they ran something.
    pub busy: f64,
    /// Share of their time that the hypervisor withheld.
    pub stolen: f64,
}

/// The bottleneck of a run, where its load was at its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// `generator`, `target`, `gateway`, `upstream`, `store`, `host`, `network` or `unknown`.
    pub answer: String,
    /// The statement of its rule, 501 to 507.
    pub text: String,
}

// CPU time and memory of a watched process and its descendants.

/// CPU time and memory of a process and its descendants (its workers) in a stage, or in the whole
/// run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUse {
    /// Its name, as given by the user.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// The stage; `None` for the whole run, warm-up and drain included.
    pub stage: Option<String>,
    /// Time between the first and the last reading, in seconds.
    pub wall_s: f64,
    /// CPU time of all threads, user and system, in seconds. Descendants that have ended count too.
    /// The kernel counts it in clock ticks, mostly of 10 ms.
    pub cpu_s: f64,
    /// `cpu_s / wall_s`.
    pub cores: f64,
    /// CPU time per request dispatched in that time, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Resident memory at the end, in bytes. Pages that several of the processes share count for
    /// each of them.
    pub rss_bytes: u64,
    /// Threads at the end.
    pub threads: u64,
    /// Processes at the end: itself and its descendants.
    #[serde(default)]
    pub processes: u64,
    /// Whether the process and its descendants ended before the last reading; the figures are those
    /// until then.
    #[serde(default)]
    pub gone: bool,
}

// The CPU time of a watched process over time.

/// The CPU time of a watched process and its descendants, about once a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessTrack {
    /// The name of the process.
    pub name: String,
    /// When it was read, after the run's start, and the CPU time since the process began.
    pub readings: Vec<(Nanos, Nanos)>,
}

impl ProcessTrack {
    /// CPU time divided by time between two moments after the run's start, in seconds. Between two
    /// readings the use is taken to be even. `None` where the readings do not reach.
    pub(crate) fn cores(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let (from, to) = (self.cpu_s(from_s)?, self.cpu_s(to_s)?);
        (to_s > from_s).then(|| (to - from) / (to_s - from_s))
    }

    /// The CPU time up to a moment. Half a second before the first and after the last reading is
    /// extrapolated.
    fn cpu_s(&self, at_s: f64) -> Option<f64> {
        let behind = self.readings.partition_point(|(at, _)| at.as_secs_f64() < at_s);
        let pair = behind.clamp(1, self.readings.len().saturating_sub(1).max(1));
        let (before, after) = (self.readings.get(pair - 1)?, self.readings.get(pair)?);
        let [(t0, c0), (t1, c1)] =
            [before, after].map(|(at, cpu)| (at.as_secs_f64(), cpu.as_secs_f64()));
        let within = at_s >= t0 - 0.5 && at_s <= t1 + 0.5 && t1 > t0;
        within.then(|| c0 + (c1 - c0) * (at_s - t0) / (t1 - t0))
    }
}
