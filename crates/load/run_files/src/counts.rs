//! Writes and reads `counts.bin`: all that a shard counted, as whole numbers that can be added up.
//!
//! One line with the layout and the version of the tool, a CRC-32 of the rest as four little-endian
//! bytes, then the counts in the format of `postcard`. The layout follows from the types, so only
//! the version that wrote a file reads it.

use plimsoll_metrics::{Snapshot, TaskTally, TimeSeries};
use serde::{Deserialize, Serialize};

use crate::error::RunFileError;

/// Version of the layout of `counts.bin`.
pub const COUNTS_SCHEMA: &str = "plimsoll.counts/3";

/// The length of the checksum.
const CRC: usize = 4;

/// Counts of a shard.
#[derive(Debug, Default, Deserialize)]
pub struct Counts {
    /// Whether the shard ended, so that no further count will come.
    pub complete: bool,
    /// Counters and distributions.
    pub snapshot: Snapshot,
    /// The same by second.
    pub series: TimeSeries,
    /// The tasks of agents; empty before the end of the shard.
    pub tasks: TaskTally,
}

/// [`Counts`] that are about to be written.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CountsView<'a> {
    /// As in [`Counts`].
    pub complete: bool,
    /// As in [`Counts`].
    pub snapshot: &'a Snapshot,
    /// As in [`Counts`].
    pub series: &'a TimeSeries,
    /// As in [`Counts`].
    pub tasks: &'a TaskTally,
}

/// The bytes of `counts.bin`; `version` is the version of the tool.
///
/// # Errors
/// [`RunFileError::Counts`], which counts of this tool do not cause.
pub fn counts_bytes(counts: &CountsView<'_>, version: &str) -> Result<Vec<u8>, RunFileError> {
    let body =
        postcard::to_stdvec(counts).map_err(|error| RunFileError::Counts(error.to_string()))?;
    let mut bytes = format!("{}\n", first_line(version)).into_bytes();
    bytes.extend(crc32fast::hash(&body).to_le_bytes());
    bytes.extend(body);
    Ok(bytes)
}

/// Reads the output of [`counts_bytes`] by the same version of the tool.
///
/// # Errors
/// [`RunFileError::Counts`] if another version wrote it, or it is damaged.
pub fn read_counts(bytes: &[u8], version: &str) -> Result<Counts, RunFileError> {
    let end = bytes.iter().take(200).position(|byte| *byte == b'\n');
    let found = end.and_then(|end| str::from_utf8(&bytes[..end]).ok());
    let (found, end) = found.zip(end).ok_or_else(|| refused("it has no first line"))?;
    let known = first_line(version);
    if found != known {
        let why = format!("its layout is `{found}`, and this version reads `{known}`");
        return Err(RunFileError::Counts(why));
    }
    let rest = &bytes[end + 1..];
    let (crc, body) = rest.split_at_checked(CRC).ok_or_else(|| refused("it is cut"))?;
    if crc32fast::hash(body).to_le_bytes() != crc {
        return Err(refused("its checksum is wrong: it was changed or cut; copy it again"));
    }
    postcard::from_bytes(body).map_err(|error| refused(&error.to_string()))
}

fn refused(why: &str) -> RunFileError {
    RunFileError::Counts(why.to_owned())
}

fn first_line(version: &str) -> String {
    format!("{COUNTS_SCHEMA} {version}")
}
