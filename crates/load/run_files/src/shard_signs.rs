//! What shards of a run tell each other, and who watches them, by small files: that one is ready,
//! when all begin, and how far one is.

use serde::{Deserialize, Serialize};

use crate::error::RunFileError;
use crate::stored;

const READY: &str = "plimsoll.ready/1";
const START: &str = "plimsoll.start/1";
const PROGRESS: &str = "plimsoll.progress/1";

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

/// A sign as JSON, with a final newline.
///
/// # Errors
/// [`RunFileError::Write`], which these do not cause.
pub fn shard_ready_json(ready: &ShardReady) -> Result<String, RunFileError> {
    stored::to_line(&ShardReady { schema: READY.to_owned(), ..ready.clone() })
}

/// The same of a start.
///
/// # Errors
/// As [`shard_ready_json`].
pub fn shard_start_json(start: &ShardStart) -> Result<String, RunFileError> {
    stored::to_line(&ShardStart { schema: START.to_owned(), ..start.clone() })
}

/// The same of the progress.
///
/// # Errors
/// As [`shard_ready_json`].
pub fn shard_progress_json(progress: &ShardProgress) -> Result<String, RunFileError> {
    stored::to_line(&ShardProgress { schema: PROGRESS.to_owned(), ..progress.clone() })
}

/// Reads a start.
///
/// # Errors
/// [`RunFileError::Layout`] for another layout, [`RunFileError::Read`] for anything else.
pub fn read_shard_start(bytes: &[u8]) -> Result<ShardStart, RunFileError> {
    stored::read(bytes, START)
}

/// Reads a progress.
///
/// # Errors
/// As [`read_shard_start`].
pub fn read_shard_progress(bytes: &[u8]) -> Result<ShardProgress, RunFileError> {
    stored::read(bytes, PROGRESS)
}
