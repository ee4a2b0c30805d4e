//! `shard.json`, the last file that a run or a shard writes: where it is, the others are
//! whole.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use plimsoll_metrics::{Interruption, ShardState};
use serde::{Deserialize, Serialize};

/// The end of a shard.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardStatus {
    /// Version of the layout: `plimsoll.shard/1`.
    pub schema: String,
    /// Which part of the run, `k/n` with k from 0.
    pub shard: String,
    /// The launch that started it, as its launcher named it; empty if it did not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub launch: String,
    /// How it ended: `done`, `late`, or `partial` after a signal.
    pub state: ShardState,
    /// The signal that ended its load early, if one did.
    pub interrupted: Option<Interruption>,
    /// The common start that it was given, in nanoseconds since 1970 UTC.
    pub start_at_unix_ns: Option<u64>,
    /// Difference of its host's clock to the launcher's, in nanoseconds, if it was measured.
    pub clock_offset_ns: Option<i64>,
    /// By how much that may be wrong.
    pub clock_uncertainty_ns: Option<u64>,
    /// How long after that it was ready, if it was late, in nanoseconds.
    pub late_by_ns: Option<u64>,
    /// Its files by name, as they were when it ended.
    pub files: BTreeMap<String, FileDigest>,
}

/// Length and checksum of a file: a copy that was cut, or a file of another shard, differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Its length.
    pub bytes: u64,
    /// The CRC-32 of its content, as zip and PNG have it: rows are read at memory speed.
    pub crc32: u32,
}

impl FileDigest {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (mut file, mut hasher) = (plimsoll_input::open(path)?, crc32fast::Hasher::new());
        let (mut bytes, mut buffer) = (0, vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(Self { bytes, crc32: hasher.finalize() }),
                read => {
                    bytes += read as u64;
                    hasher.update(&buffer[..read]);
                }
            }
        }
    }

    /// How a file differs from the one of this digest, in words; `None` if it does not.
    pub fn mismatch(&self, path: &Path) -> Option<String> {
        match Self::of(path) {
            Ok(found) if found == *self => None,
            Ok(found) if found.bytes != self.bytes => {
                Some(format!("has {} bytes instead of {}", found.bytes, self.bytes))
            }
            Ok(_) => Some("has other content than the run wrote".to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Some("is missing".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }
}

// Signals between the shards of a run and their observer, as small files: ready, common start
// time, progress, and stop.

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
