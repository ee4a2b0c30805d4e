//! Reasons why a suite, or one of its measurements, could not run.

use std::io;

use plimsoll_metrics::MetricsError;
use plimsoll_profile::Problems;
use plimsoll_runner::RunnerError;
use plimsoll_runner::knee::ProbeError;

/// Reason for a missing result. Failures of the target are never among these: they are data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// Options, or a file that they name, that this suite does not support; the text says what to
    /// give.
    #[error("{0}")]
    Usage(String),
    /// The address under test cannot be loaded. Correct `--target`.
    #[error("{0}")]
    Target(String),
    /// A child process ended, did not print its address in time, or does not answer there, with its
    /// last lines on stderr; a port that is taken is the usual cause (`--port`). Or a stored result
    /// cannot be read: use the file as Plimsoll wrote it, with the version that wrote it.
    #[error("{0}")]
    Failed(String),
    /// The system refused something: often a limit on processes, a binary that was replaced
    /// meanwhile, or a folder that cannot be written (`--out`).
    #[error("cannot {what}: {source}")]
    System {
        /// The action.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A result could not be written as JSON: a bug in this tool.
    #[error("cannot write the result: {0}")]
    Json(#[from] serde_json::Error),
    /// The load of a measurement is refused, often because of the target's address or a header.
    #[error(transparent)]
    Profile(#[from] Problems),
    /// The load could not run.
    #[error(transparent)]
    Run(#[from] RunnerError),
    /// A probe of a search could not be made.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A histogram could not be read or written.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

impl SuiteError {
    /// Converts a system error for `map_err`.
    pub(crate) fn system(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what: what.to_owned(), source }
    }
}
