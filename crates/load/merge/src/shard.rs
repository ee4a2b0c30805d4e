//! The folder of one shard, read back.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plimsoll_measure::Stripe;
use plimsoll_metrics::{RunExemplars, RunMetadata, RunSummary, ShardState};
use plimsoll_run_files::{
    Counts, RunFileError, ShardStatus, read_counts, read_exemplars, read_shard_status, read_summary,
};
use serde::Deserialize;
use serde_json::Value;

use crate::error::MergeError;

/// The folder of one shard, without its counts, which are large.
#[derive(Clone, Debug)]
pub struct Shard {
    pub(crate) folder: PathBuf,
    pub(crate) place: Stripe,
    pub(crate) fingerprint: String,
    /// The whole `plan.json`.
    pub(crate) document: Value,
    pub(crate) planned: RunMetadata,
    pub(crate) status: Option<ShardStatus>,
    pub(crate) summary: Option<RunSummary>,
    /// Its files that are damaged, and how: the copy broke off, or the disk was full.
    pub(crate) damaged: Vec<String>,
}

/// The part of `plan.json` that is needed.
#[derive(Deserialize)]
struct PlanFile {
    schedule_fingerprint: String,
    metadata: RunMetadata,
}

impl Shard {
    /// Reads the folder of a shard, whether or not the shard ended. Files that are damaged do not
    /// count, and are named.
    ///
    /// # Errors
    /// [`MergeError::NotAShard`] if there is no plan of a shard in it, [`MergeError::Read`] if one
    /// of its files cannot be read.
    pub fn read(folder: &Path) -> Result<Self, MergeError> {
        let refuse = |why: String| MergeError::NotAShard { folder: folder.to_owned(), why };
        let Some(bytes) = contents(&folder.join("plan.json"))? else {
            return Err(refuse(
                "no plan.json is in it, so it is not the folder of a run".to_owned(),
            ));
        };
        let parsed = serde_json::from_slice(&bytes)
            .and_then(|document: Value| Ok((document, serde_json::from_slice(&bytes)?)));
        let (document, plan): (Value, PlanFile) =
            parsed.map_err(|error| {
                refuse(format!(
                    "its plan.json is damaged ({error}); copy the folder again, or leave it out: the shard is then missing"
                ))
            })?;
        let place = place(&plan.metadata.run.shard);
        let place = place.filter(|place| place.count() > 1).ok_or_else(|| {
            refuse(format!(
                "it holds a whole run (shard {}), and there is nothing to add to it; `plimsoll run --shard K/N` makes shards",
                plan.metadata.run.shard
            ))
        })?;
        let mut damaged = Vec::new();
        let status = read(folder, "shard.json", read_shard_status);
        let summary = read(folder, "summary.json", read_summary);
        Ok(Self {
            place,
            fingerprint: plan.schedule_fingerprint,
            document,
            planned: plan.metadata,
            status: unless_damaged(status, &mut damaged)?,
            summary: unless_damaged(summary, &mut damaged)?,
            folder: folder.to_owned(),
            damaged,
        })
    }

    /// Which part of the run it is, `k/n`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.place.index(), self.place.count())
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What became of it.
    pub fn state(&self) -> ShardState {
        let stated = self.status.as_ref().map(|status| status.state);
        match stated {
            Some(ShardState::Done) if self.summary.is_some() && self.damaged.is_empty() => {
                ShardState::Done
            }
            Some(ShardState::Late) => ShardState::Late,
            _ => ShardState::Partial,
        }
    }

    /// What it counted; `None` if it was cut off within its first second, or its file is damaged.
    pub(crate) fn counts(&mut self) -> Result<Option<Counts>, MergeError> {
        let version = &self.planned.run.tool_version;
        let counts = read(&self.folder, "counts.bin", |bytes| read_counts(bytes, version));
        unless_damaged(counts, &mut self.damaged)
    }

    /// Its single requests with all their times. They only illustrate: none of a damaged file.
    pub(crate) fn exemplars(&self) -> Result<Option<RunExemplars>, MergeError> {
        let exemplars = read(&self.folder, "exemplars.json", read_exemplars);
        unless_damaged(exemplars, &mut Vec::new())
    }

    /// Its names and stages as they were carried out, or else as planned.
    pub(crate) fn metadata(&self) -> &RunMetadata {
        self.summary.as_ref().map_or(&self.planned, |summary| &summary.metadata)
    }
}

/// What was read, and nothing of a damaged file, which is noted.
fn unless_damaged<T>(
    read: Result<Option<T>, MergeError>,
    damaged: &mut Vec<String>,
) -> Result<Option<T>, MergeError> {
    match read {
        Err(MergeError::File { path, source }) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            damaged.push(format!("{name}: {source}"));
            Ok(None)
        }
        read => read,
    }
}

/// Reads a file that may be missing.
fn read<T>(
    folder: &Path,
    name: &str,
    parse: impl FnOnce(&[u8]) -> Result<T, RunFileError>,
) -> Result<Option<T>, MergeError> {
    let path = folder.join(name);
    let bytes = contents(&path)?;
    let parsed = bytes.map(|bytes| parse(&bytes)).transpose();
    parsed.map_err(|source| MergeError::File { path, source })
}

fn contents(path: &Path) -> Result<Option<Vec<u8>>, MergeError> {
    match plimsoll_input::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(MergeError::Read { path: path.to_owned(), source }),
    }
}

/// Reads `k/n`.
fn place(text: &str) -> Option<Stripe> {
    let (index, count) = text.split_once('/')?;
    Stripe::new(index.parse().ok()?, count.parse().ok()?)
}
