//! Signals between the shards of a run and their observer, as small files: ready, common start
//! time, progress, and stop.

use serde::{Deserialize, Serialize};

/// A sign to the shards of a launch: `ready.json` in the folder of a shard that waits for the
/// start; beside the folders `start.json`, when all begin, and `stop.json`, that one ended early
/// and all stop.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSign {
    /// Version of the layout: `plimsoll.start/1`.
    pub schema: String,
    /// The launch that it is of: shards of another one ignore it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub launch: String,
    /// The time by the clock of the host that reads the file, in nanoseconds since 1970 UTC.
    pub unix_ns: u64,
    /// Offset of this clock ahead of the launcher's, in nanoseconds, if the launcher measured it.
    pub clock_offset_ns: Option<i64>,
    /// By how much that may be wrong.
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
    /// Requests since the start, by outcome.
    pub completed: u64,
    /// Well-formed refusals.
    pub rejected: u64,
    /// Ended by an error or their time limit.
    pub failed: u64,
}
