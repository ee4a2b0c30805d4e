//! The files of JSON with a version of their layout: how each is written and read.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use plimsoll_metrics::{Interruption, RunSummary, RunTimeline, ShardState, summary, timeline};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::RunFileError;

macro_rules! files {
    ($($file:literal $type:ident: $layout:expr, $write:ident, $read:ident;)+) => {$(
        #[doc = concat!("`", $file, "` as JSON in one line, with a final newline.\n\n# Errors\n")]
        #[doc = "[`RunFileError::Write`], which a value built by this tool does not cause."]
        pub fn $write(value: &$type) -> Result<String, RunFileError> {
            to_line(&$type { schema: $layout.to_owned(), ..value.clone() })
        }

        #[doc = concat!("Reads `", $file, "`.\n\n# Errors\n")]
        #[doc = "[`RunFileError::Layout`] for another layout, [`RunFileError::Read`] for anything else."]
        pub fn $read(bytes: &[u8]) -> Result<$type, RunFileError> {
            read(bytes, $layout)
        }
    )+};
}

files! {
    "timeline.json" RunTimeline: timeline::SCHEMA, timeline_json, read_timeline;
    "start.json" ShardSign: "plimsoll.start/1", shard_sign_json, read_shard_sign;
    "progress.json" ShardProgress: "plimsoll.progress/1", shard_progress_json, read_shard_progress;
}

const SHARD: &str = "plimsoll.shard/1";
/// Introduces the last member of `shard.json`: the CRC-32 of all before it.
const OWN_DIGEST: &str = ",\"crc32\":";

/// `shard.json` as JSON in one line, with a final newline. It ends with a digest of its own: a
/// digest that is missing in its list would leave a file unchecked.
///
/// # Errors
/// [`RunFileError::Write`], which a value built by this tool does not cause.
pub fn shard_status_json(value: &ShardStatus) -> Result<String, RunFileError> {
    let text = to_line(&ShardStatus { schema: SHARD.to_owned(), ..value.clone() })?;
    let content = text.trim_end_matches("}\n");
    Ok(format!("{content}{OWN_DIGEST}{}}}\n", crc32fast::hash(content.as_bytes())))
}

/// Reads `shard.json`.
///
/// # Errors
/// [`RunFileError::Layout`] for another layout, [`RunFileError::Changed`] if its digest does not
/// match, [`RunFileError::Read`] for anything else.
pub fn read_shard_status(bytes: &[u8]) -> Result<ShardStatus, RunFileError> {
    let status = read(bytes, SHARD)?;
    let text = String::from_utf8_lossy(bytes);
    let (content, digest) = text.rsplit_once(OWN_DIGEST).ok_or(RunFileError::Changed)?;
    let found = format!("{}}}\n", crc32fast::hash(content.as_bytes()));
    if digest == found { Ok(status) } else { Err(RunFileError::Changed) }
}

/// How a file in the folder of a run differs from the one that the run wrote; `None` if it does
/// not, and elsewhere.
pub fn changed_since(path: &Path) -> Option<String> {
    digests(path.parent()?).get(path.file_name()?.to_str()?)?.mismatch(path)
}

/// The files in the folder of a run that are missing or have another length than the run wrote.
pub fn changed_files(folder: &Path) -> Vec<String> {
    let digests = digests(folder).into_iter().filter_map(|(name, digest)| {
        let path = folder.join(&name);
        let length = path.metadata().map_or(0, |file| file.len());
        (length != digest.bytes)
            .then(|| format!("{} has {length} bytes instead of {}", path.display(), digest.bytes))
    });
    digests.collect()
}

/// The digests that a run stored; none of a run that did not end.
fn digests(folder: &Path) -> BTreeMap<String, FileDigest> {
    let status = plimsoll_input::read(&folder.join("shard.json")).ok();
    let status = status.and_then(|bytes| read_shard_status(&bytes).ok());
    status.map(|status| status.files).unwrap_or_default()
}

/// The summary as indented JSON, with a final newline.
///
/// # Errors
/// [`RunFileError::Write`], which a summary built by this tool does not cause.
pub fn summary_json(summary: &RunSummary) -> Result<String, RunFileError> {
    let mut text = serde_json::to_string_pretty(summary).map_err(RunFileError::Write)?;
    text.push('\n');
    Ok(text)
}

/// Reads the output of [`summary_json`].
///
/// # Errors
/// [`RunFileError::Layout`] for a summary of another layout, [`RunFileError::Read`] for anything
/// else.
pub fn read_summary(bytes: &[u8]) -> Result<RunSummary, RunFileError> {
    read(bytes, summary::SCHEMA)
}

/// A value as JSON in one line, with a final newline.
fn to_line(value: &impl Serialize) -> Result<String, RunFileError> {
    let mut text = serde_json::to_string(value).map_err(RunFileError::Write)?;
    text.push('\n');
    Ok(text)
}

/// Reads a value of a known layout, which the file names as its `schema`, or `format`.
///
/// # Errors
/// [`RunFileError::Layout`] for another layout, [`RunFileError::Read`] for anything else.
pub fn read<T: DeserializeOwned>(bytes: &[u8], known: &'static str) -> Result<T, RunFileError> {
    #[derive(Deserialize)]
    struct Layout {
        #[serde(alias = "format")]
        schema: String,
    }
    let layout: Layout = serde_json::from_slice(bytes).map_err(RunFileError::Read)?;
    if layout.schema != known {
        return Err(RunFileError::Layout { found: layout.schema, known });
    }
    serde_json::from_slice(bytes).map_err(RunFileError::Read)
}

// `shard.json`, the last file that a run or a shard writes: where it is, the others are
// whole.

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
