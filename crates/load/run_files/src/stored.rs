//! The files of JSON with a version of their layout: how each is written and read.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline, exemplars, summary, timeline};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::RunFileError;
use crate::shard_status::{FileDigest, ShardStatus};
use crate::shard_status::{ShardProgress, ShardSign};

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
    "exemplars.json" RunExemplars: exemplars::SCHEMA, exemplars_json, read_exemplars;
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
