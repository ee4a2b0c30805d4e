//! Writes and reads `shard.json`, the last file that a shard writes: where it is, the others are
//! whole.

use plimsoll_metrics::{Interruption, ShardState};
use serde::{Deserialize, Serialize};

use crate::error::RunFileError;
use crate::stored;

/// Version of the layout of `shard.json`.
const SCHEMA: &str = "plimsoll.shard/1";

/// The end of a shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardStatus {
    /// Version of the layout: `plimsoll.shard/1`.
    pub schema: String,
    /// Which part of the run, `k/n` with k from 0.
    pub shard: String,
    /// The launch that started it, as its launcher named it; empty if it did not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub launch: String,
    /// What became of it: `done`, `late`, or `partial` after a signal.
    pub state: ShardState,
    /// The signal that ended its load early, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// The common start that it was given, in nanoseconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at_unix_ns: Option<u64>,
    /// What its host's clock is ahead of the launcher's, in nanoseconds, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ns: Option<i64>,
    /// By how much that may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_uncertainty_ns: Option<u64>,
    /// How long after that it was ready, if it was late, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_by_ns: Option<u64>,
}

/// The status as JSON, with a final newline.
///
/// # Errors
/// [`RunFileError::Write`], which a status does not cause.
pub fn shard_status_json(status: &ShardStatus) -> Result<String, RunFileError> {
    stored::to_line(&ShardStatus { schema: SCHEMA.to_owned(), ..status.clone() })
}

/// Reads what [`shard_status_json`] wrote.
///
/// # Errors
/// [`RunFileError::Layout`] for another layout, [`RunFileError::Read`] for anything else.
pub fn read_shard_status(bytes: &[u8]) -> Result<ShardStatus, RunFileError> {
    stored::read(bytes, SCHEMA)
}
