//! The folder of one shard, read back.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use plimsoll_measure::Stripe;
use plimsoll_metrics::{MetricsError, RunMetadata, RunSummary, ShardState};
use plimsoll_run_files::{
    Counts, RunFileError, ShardStatus, find_rows, read_counts, read_shard_status, read_summary,
};
use serde::Deserialize;
use serde_json::Value;

/// The folder of one shard, without its counts, which are large.
#[derive(Clone, Debug)]
pub struct Shard {
    pub(crate) files: Files,
    pub(crate) place: Stripe,
    pub(crate) fingerprint: String,
    /// The whole `plan.json`.
    pub(crate) document: Value,
    pub(crate) planned: RunMetadata,
    pub(crate) status: Option<ShardStatus>,
    pub(crate) summary: Option<RunSummary>,
}

/// The files of a shard.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
    /// Those that are damaged, with how in words: the copy broke off, the disk was full, or they
    /// are of another shard. They do not count.
    pub(crate) damaged: BTreeMap<String, String>,
}

impl Files {
    /// Reads a file; `None` if it is missing or damaged, which is noted.
    fn read<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&[u8]) -> Result<T, RunFileError>,
    ) -> Result<Option<T>, MergeError> {
        if self.damaged.contains_key(name) {
            return Ok(None);
        }
        let bytes = contents(&self.folder.join(name))?;
        match bytes.map(|bytes| parse(&bytes)).transpose() {
            Ok(read) => Ok(read),
            Err(error) => {
                self.damaged.insert(name.to_owned(), format!("{name}: {error}"));
                Ok(None)
            }
        }
    }
}

/// The part of `plan.json` that is needed.
#[derive(Deserialize)]
struct PlanFile {
    schedule_fingerprint: String,
    metadata: RunMetadata,
}

impl Shard {
    /// Reads the folder of a shard, whether or not the shard ended. Damaged files are not counted,
    /// but named.
    ///
    /// # Errors
    /// [`MergeError::NotAShard`] if it has no plan of a shard, [`MergeError::Read`] if one of its
    /// files cannot be read.
    pub fn read(folder: &Path) -> Result<Self, MergeError> {
        let refuse = |why: String| MergeError::NotAShard { folder: folder.to_owned(), why };
        let Some(bytes) = contents(&folder.join("plan.json"))? else {
            return Err(refuse("it is not a run folder, because it has no plan.json".to_owned()));
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
        let mut files = Files { folder: folder.to_owned(), damaged: BTreeMap::new() };
        let status = files.read("shard.json", read_shard_status)?;
        let run = &plan.metadata.run;
        if let Some(other) = &status
            && (&other.shard, &other.launch) != (&run.shard, &run.launch)
        {
            let how = format!("shard.json is of {} in launch `{}`", other.shard, other.launch);
            files.damaged.insert("shard.json".to_owned(), how);
        }
        for (name, digest) in status.iter().flat_map(|status| &status.files) {
            if let Some(how) = digest.mismatch(&folder.join(name)) {
                files.damaged.insert(name.clone(), format!("{name} {how}"));
            }
        }
        let rows = ["results.jsonl", "tasks.jsonl"].map(|name| find_rows(folder, name));
        for name in rows.iter().flatten().filter_map(|path| path.file_name()?.to_str()) {
            if status.as_ref().is_some_and(|status| !status.files.contains_key(name)) {
                files.damaged.insert(name.to_owned(), format!("{name} is not in shard.json"));
            }
        }
        Ok(Self {
            place,
            fingerprint: plan.schedule_fingerprint,
            document,
            planned: plan.metadata,
            status,
            summary: files.read("summary.json", read_summary)?,
            files,
        })
    }

    /// Which part of the run it is, `k/n`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.place.index(), self.place.count())
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.files.folder
    }

    /// Whether a file of it is as the shard wrote it, as far as is known.
    pub fn is_whole(&self, name: &str) -> bool {
        !self.files.damaged.contains_key(name)
    }

    /// How the shard ended.
    pub fn state(&self) -> ShardState {
        let stated = self.status.as_ref().map(|status| status.state);
        match stated {
            Some(ShardState::Done) if self.summary.is_some() && self.files.damaged.is_empty() => {
                ShardState::Done
            }
            Some(ShardState::Late) => ShardState::Late,
            _ => ShardState::Partial,
        }
    }

    /// Its counts; `None` if it was cut off within its first second, or its file is damaged.
    pub(crate) fn counts(&mut self) -> Result<Option<Counts>, MergeError> {
        let version = &self.planned.run.tool_version;
        self.files.read("counts.bin", |bytes| read_counts(bytes, version))
    }

    /// Its names and stages as they were carried out, or else as planned.
    pub(crate) fn metadata(&self) -> &RunMetadata {
        self.summary.as_ref().map_or(&self.planned, |summary| &summary.metadata)
    }
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

// Why shards cannot be merged.

/// Reasons why shards cannot be merged. Each names the folder at fault and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A folder holds no shard.
    #[error("{}: {why}", folder.display())]
    NotAShard {
        /// The folder.
        folder: PathBuf,
        /// The problem and its remedy.
        why: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No folder was given.
    #[error(
        "no shards to merge: give the folders shard-KKKKK-of-NNNNN, or the folder that contains them"
    )]
    Nothing,
    /// Two shards are not parts of the same run.
    #[error(
        "{} and {} are not shards of one run: {what} is {} in the first and {} in the second; merge the shards of each run by themselves",
        folders[0].display(), folders[1].display(), values[0], values[1]
    )]
    Mixed {
        /// The property that differs.
        what: String,
        /// The two folders.
        folders: Box<[PathBuf; 2]>,
        /// Its value in each.
        values: Box<[String; 2]>,
    },
    /// The same shard was given twice.
    #[error("shard {shard} appears twice: {} and {}; leave one of them out", folders[0].display(), folders[1].display())]
    Twice {
        /// Which part, `k/n`.
        shard: String,
        /// The two folders.
        folders: Box<[PathBuf; 2]>,
    },
    /// The run has another number of shards than was expected.
    #[error("--expect {expected} does not fit: {} says that the run has {found} shards", folder.display())]
    Expected {
        /// The requested value.
        expected: u64,
        /// The value in the shards.
        found: u64,
        /// A folder with the found value.
        folder: PathBuf,
    },
    /// A histogram cannot be encoded.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// Rows cannot be written.
    #[error("cannot write the rows")]
    Write(#[source] io::Error),
}
