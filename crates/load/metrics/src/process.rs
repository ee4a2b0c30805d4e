//! What a watched process used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a process used in a stage, or in the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUse {
    /// Name given to it.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// The stage; `None` for the whole run, warm-up and drain included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Time between the two readings, in seconds.
    pub wall_s: f64,
    /// CPU time of all its threads, user and system, in seconds. The kernel counts it in clock ticks, mostly of 10 ms.
    pub cpu_s: f64,
    /// `cpu_s / wall_s`.
    pub cores: f64,
    /// CPU time over the requests that were dispatched meanwhile, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_request: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub rss_bytes: u64,
    /// Threads at the end.
    pub threads: u64,
    /// Had the process ended before the last reading? Then the figures are those of the readings before.
    #[serde(default)]
    pub gone: bool,
}
