//! CPU time and memory of a watched process and its descendants.

use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

    /// The CPU time up to a moment. Half a second before the first and after the last reading
    /// count as that reading would go on.
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
