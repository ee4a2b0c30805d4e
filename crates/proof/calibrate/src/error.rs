//! Reasons why an experiment could not run.

use std::io;

use plimsoll_metrics::MetricsError;
use plimsoll_mock::MockError;
use plimsoll_profile::Problems;
use plimsoll_runner::RunnerError;

/// Reason why an experiment could not run. The experiment is reported as not run, never as passed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// A reference server could not be started or spoken to. Look at the cause; often a limit on
    /// processes, descriptors or ports.
    #[error("the reference server: {0}")]
    Server(#[source] io::Error),
    /// The reference server sent something other than its log. It may have been killed for
    /// lack of memory.
    #[error("the reference server's record cannot be read: {0}")]
    Truth(#[from] serde_json::Error),
    /// The mock provider could not be started.
    #[error(transparent)]
    Mock(#[from] MockError),
    /// The profile of an experiment is refused: a bug in this tool.
    #[error("a profile of the calibration itself is refused: {0}")]
    Profile(#[from] Problems),
    /// The engine failed to run the load.
    #[error(transparent)]
    Run(#[from] RunnerError),
    /// A histogram could not be written.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The system refused something that an experiment needs, or the record cannot be kept or read:
    /// choose another file with `--record`.
    #[error("{what}: {source}")]
    System {
        /// The action.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The experiment has an unmet requirement; the text names it and how to meet it.
    #[error("{0}")]
    Missing(String),
}

impl CalibrateError {
    /// A thread of ours panicked.
    pub(crate) fn panicked() -> Self {
        Self::Missing("a thread of the calibration panicked: report it".to_owned())
    }

    /// Converts a system error for `map_err`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::System { what, source }
    }

    /// The same for errors of system calls made directly.
    pub(crate) fn errno(what: &'static str) -> impl FnOnce(nix::Error) -> Self {
        move |errno| Self::system(what)(errno.into())
    }
}
