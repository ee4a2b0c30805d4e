//! Errors of this crate.

use std::path::PathBuf;

use plimsoll_metrics::MetricsError;
use plimsoll_run_files::RunFileError;

/// Why runs could not be compared at all. What makes a comparison worthless, such as another
/// machine, is part of the [`Comparison`](crate::Comparison) instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The path is no folder of a run. Remedy: give the folder that `plimsoll run` printed.
    #[error(
        "{} is not the folder of a run, nor of a single one: it has no summary.json; give the folders that `plimsoll run` printed after `files:`, or all runs in it as {}/*",
        .0.display(), .0.display()
    )]
    NotARun(PathBuf),
    /// The folder is that of a suite. Remedy: `suite --against`.
    #[error(
        "{} is the folder of a suite, not of a run; `plimsoll suite NAME --against {}/suite.json` compares suites",
        .0.display(), .0.display()
    )]
    Suite(PathBuf),
    /// The run was killed before it wrote a summary. Remedy: run it again.
    #[error(
        "the run {} did not finish: it has a plan.json and no summary.json; run it again (`plimsoll report` shows what there is)",
        .0.display()
    )]
    Killed(PathBuf),
    /// A file of a run cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A summary is damaged, or of another version.
    #[error("{}: {error}", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: RunFileError,
    },
    /// A plan is damaged.
    #[error("{}: this is not a plan.json that this version of plimsoll can read: {error}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: serde_json::Error,
    },
    /// The folder is that of a comparison. Remedy: give those of its runs.
    #[error(
        "{} is the folder of a comparison, not of a run; `plimsoll report {}` shows it",
        .0.display(), .0.display()
    )]
    IsComparison(PathBuf),
    /// The same run was given twice. Remedy: leave one out; a run is not its own repeat.
    #[error("the run {} is given twice, as {}; each run counts once", .0.display(), .1.display())]
    Twice(PathBuf, PathBuf),
    /// A gate cannot be read.
    #[error("gate: {0}")]
    Gate(#[from] MetricsError),
    /// A name of `--allow-different` is unknown.
    #[error("`{name}` is nothing that can differ; known are {known}")]
    UnknownDifference {
        /// The name.
        name: String,
        /// Those that are known.
        known: String,
    },
    /// `--regress-pct` with more than one run on a side. Remedy: leave it out.
    #[error(
        "--regress-pct is the simple rule for one old and one new run, and here are {0} + {1}; leave it out: gates say more"
    )]
    SimpleRule(usize, usize),
    /// A result could not be written as JSON or XML; it does not happen with what this crate built.
    #[error("the result cannot be written: {0}")]
    Write(String),
}

impl CompareError {
    /// Whether it is wrong usage, and not the state of a file.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NotARun(_)
                | Self::Suite(_)
                | Self::IsComparison(_)
                | Self::Twice(..)
                | Self::Gate(_)
                | Self::UnknownDifference { .. }
                | Self::SimpleRule(..)
        )
    }
}
