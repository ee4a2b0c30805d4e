//! Reasons why a run could not start or finish.

use std::io;
use std::path::PathBuf;

use plimsoll_engine::EngineError;
use plimsoll_measure::Nanos;
use plimsoll_metrics::MetricsError;
use plimsoll_run_files::{RunFileError, ShardSign};

/// Reason why a run could not be carried out, or its results could not be stored. Failures of the
/// target are part of the result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The engine cannot run this load; the message says what to change.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Figures or thresholds cannot be computed. It says which.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// No folder can be made: choose another place.
    #[error("cannot write to the folder {}: {source}; choose a writable one with --out", folder.display())]
    Folder {
        /// The parent folder.
        folder: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk is full before the load: free some space, or choose another place.
    #[error(
        "the disk of {} has no {mib} MiB left for the results: {source}; free some, or choose another with --out",
        folder.display()
    )]
    NoSpace {
        /// The run's folder.
        folder: PathBuf,
        /// Memory requested, in MiB.
        mib: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// A run with this id has run here already: choose another run id or place.
    #[error(
        "{} already exists: this run id was used before, or its shards had another number, launch or build; choose another --run-id or --out, or remove the folder",
        .0.display()
    )]
    ShardExists(PathBuf),
    /// A shard was ready only after the common start, so it sent no requests.
    #[error(
        "{who} was ready {late} after the common start, and sent nothing: its schedule is never shifted; start it earlier, give --start-at a later time, or set this host's clock"
    )]
    Late {
        /// The run or shard.
        who: String,
        /// How long after.
        late: String,
        /// The start.
        start: Box<ShardSign>,
        /// How long after it.
        late_by: Nanos,
    },
    /// The start lies too far ahead.
    #[error(
        "the common start lies {ahead} ahead by this host's clock, more than --start-timeout allows; give an earlier --start-at or a longer timeout, or set this host's clock"
    )]
    TooFar {
        /// How far ahead.
        ahead: String,
    },
    /// Not all shards were ready in time.
    #[error(
        "nothing was sent, because not all shards were ready within --start-timeout: {who}; look into their own output, and start all shards again"
    )]
    NotReady {
        /// Name of the missing shard.
        who: String,
    },
    /// The files by which shards agree on a start cannot be used.
    #[error("the shards cannot agree on a start: {0}")]
    BrokenStart(String),
    /// The user ended the wait for the start.
    #[error("interrupted before the common start: nothing was sent")]
    InterruptedBeforeStart,
    /// The counts of a shard cannot be written.
    #[error(transparent)]
    Counts(#[from] RunFileError),
    /// A file of the run cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file of the run cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file of blocks is damaged or of another version.
    #[error("{}", path.display())]
    Blocks {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: RunFileError,
    },
    /// The facts of a comparison's shard are damaged or of another version.
    #[error(
        "{} is damaged or of another version: fetch the shard's folder again, or leave it out",
        path.display()
    )]
    Facts {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// `plan.json` is of another version: use the version that wrote it.
    #[error("{0}")]
    StoredPlan(String),
    /// The plan cannot be written as JSON.
    #[error("the plan cannot be written")]
    Json(#[from] serde_json::Error),
}

impl RunnerError {
    /// Whether the plan is at fault, and not the system or a target: threads and timers are the
    /// system's.
    pub const fn is_usage(&self) -> bool {
        use EngineError::{NotBegun, Thread, Unasked, Worker, WorkerPanicked};
        if matches!(self, Self::ShardExists(_)) {
            return true;
        }
        let Self::Engine(error) = self else { return false };
        !matches!(error, Unasked { .. } | Thread(_) | Worker(_) | WorkerPanicked | NotBegun)
    }
}

/// Shards by their place: the first few.
pub(crate) fn names(missing: &[u64], count: u64) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> =
        missing.iter().take(SHOWN).map(|index| format!("{index}/{count}")).collect();
    match (shown.is_empty(), missing.len().saturating_sub(SHOWN)) {
        (true, _) => "neither shard 0 nor the launcher wrote start.json for this launch".to_owned(),
        (_, 0) => format!("{} missing", shown.join(", ")),
        (_, more) => format!("{} and {more} more missing", shown.join(", ")),
    }
}
