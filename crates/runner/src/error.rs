//! Why a run could not be carried out.

use std::io;
use std::path::PathBuf;

use plimsoll_engine::EngineError;
use plimsoll_metrics::MetricsError;
use plimsoll_run_files::RunFileError;

/// Why a run could not be carried out, or its results could not be stored. What the target does is
/// part of the result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The engine cannot carry out the load. It says what to change.
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
        /// What was to be reserved.
        mib: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// A shard of this run has run here already: choose another run id or place.
    #[error(
        "{} is there already: this shard has run; choose another --run-id or --out, or remove the folder",
        .0.display()
    )]
    ShardExists(PathBuf),
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
    /// The file of blocks is not one of this version, or damaged.
    #[error("{}", path.display())]
    Blocks {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: RunFileError,
    },
    /// `plan.json` is not one of this version: use the version that wrote it.
    #[error("{0}")]
    StoredPlan(String),
    /// The plan cannot be written as JSON.
    #[error("the plan cannot be written")]
    Json(#[from] serde_json::Error),
}

impl RunnerError {
    /// Whether the plan is at fault, and not the system: threads and timers are the system's.
    pub const fn is_usage(&self) -> bool {
        use EngineError::{Thread, Worker, WorkerPanicked};
        if matches!(self, Self::ShardExists(_)) {
            return true;
        }
        matches!(self, Self::Engine(error) if !matches!(error, Thread(_) | Worker(_) | WorkerPanicked))
    }
}
