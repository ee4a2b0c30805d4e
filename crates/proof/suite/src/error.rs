//! Why a suite, or one measurement of it, could not be carried out.

use std::io;
use std::path::PathBuf;

use plimsoll_metrics::MetricsError;
use plimsoll_profile::Problems;
use plimsoll_runner::RunnerError;
use plimsoll_runner::knee::ProbeError;

/// Why there is no result. Failures of the target are never among these: they are data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// A child process could not be started. Look at the cause: often a limit on processes, or a
    /// binary that was replaced meanwhile.
    #[error("cannot start {what}: {source}")]
    Start {
        /// Which process.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A child process ended, did not print its address in time, or does not answer there. Its last
    /// lines on stderr are quoted; a port that is taken is the usual cause (`--port`).
    #[error("{what} is not ready: {why}")]
    NotReady {
        /// Which process.
        what: String,
        /// The condition that was not met, and the process's last lines.
        why: String,
    },
    /// The address under test cannot be loaded. Correct `--target`.
    #[error("the target {url} cannot be used: {why}")]
    Target {
        /// The address.
        url: String,
        /// The problem with it.
        why: String,
    },
    /// Targets that this suite cannot have.
    #[error("{0}")]
    Targets(String),
    /// The earlier result cannot be compared with. Give the `suite.json` of a run of the same
    /// suite.
    #[error("cannot compare with {path}: {why}")]
    Baseline {
        /// The file.
        path: PathBuf,
        /// The problem with it.
        why: String,
    },
    /// A stored result cannot be read. Use the file as Plimsoll wrote it, with the version that
    /// wrote it.
    #[error("this is not a suite.json that this version can read: {0}")]
    Read(String),
    /// A file of the suite cannot be written. Choose another folder with `--out`.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A result could not be written as JSON: a bug in this tool.
    #[error("cannot write the result: {0}")]
    Json(#[from] serde_json::Error),
    /// The load of a measurement is refused, often because of the target's address or a header.
    #[error(transparent)]
    Profile(#[from] Problems),
    /// The load could not be carried out.
    #[error(transparent)]
    Run(#[from] RunnerError),
    /// A probe of a search could not be made.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A histogram could not be read or written.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}
