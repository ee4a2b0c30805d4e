//! CPU time and memory of a watched process and its descendants.

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
