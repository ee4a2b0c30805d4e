//! What shards of a run tell each other, and who watches them, by small files: that one is ready,
//! when all begin, and how far one is.

use serde::{Deserialize, Serialize};

/// `ready.json` in the folder of a shard: it waits for the common start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardReady {
    /// Version of the layout: `plimsoll.ready/1`.
    pub schema: String,
    /// Which part of the run, `k/n` with k from 0.
    pub shard: String,
    /// Since when, by its host's clock, in nanoseconds since 1970 UTC.
    pub unix_ns: u64,
    /// Its process.
    pub pid: u32,
}

/// `start.json` beside the folders of the shards: when all begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardStart {
    /// Version of the layout: `plimsoll.start/1`.
    pub schema: String,
    /// The start by the clock of the host that reads the file, in nanoseconds since 1970 UTC.
    pub unix_ns: u64,
    /// What this clock is ahead of the launcher's, in nanoseconds, where the launcher measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ns: Option<i64>,
    /// By how much that may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_uncertainty_ns: Option<u64>,
}

/// `progress.json` in the folder of a shard: how far it is, written about every second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardProgress {
    /// Version of the layout: `plimsoll.progress/1`.
    pub schema: String,
    /// Which part of the run, `k/n` with k from 0.
    pub shard: String,
    /// Time since the start, in seconds.
    pub elapsed_s: f64,
    /// Length of all stages, in seconds.
    pub duration_s: f64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests since the start, by what became of them.
    pub completed: u64,
    /// Well-formed refusals.
    pub rejected: u64,
    /// Ended by an error or their time limit.
    pub failed: u64,
}
