//! Errors of this crate.

use std::path::PathBuf;

use plimsoll_metrics::MetricsError;
use plimsoll_run_files::RunFileError;

/// Errors that prevent a comparison. Reasons that make it worthless, such as another machine, are
/// part of the [`Comparison`](crate::Comparison) instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The path is not a run folder. Remedy: give the folder that `plimsoll run` printed.
    #[error(
        "{} is not a run folder: it has no summary.json; pass the path that `plimsoll run` printed after `files:`, or all runs in this folder as {}/*",
        .0.display(), .0.display()
    )]
    NotARun(PathBuf),
    /// The folder belongs to a suite. Remedy: `suite --against`.
    #[error(
        "{} is a suite folder, not a run folder; `plimsoll suite NAME --against {}/suite.json` compares suites",
        .0.display(), .0.display()
    )]
    Suite(PathBuf),
    /// The run was killed before it wrote a summary. Remedy: run it again.
    #[error(
        "the run {} did not finish: it has a plan.json but no summary.json; run it again (`plimsoll report` shows its results so far)",
        .0.display()
    )]
    Killed(PathBuf),
    /// A file of a run cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A summary is damaged, or of another version.
    #[error("{}: {error}", path.display())]
    Summary {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        error: RunFileError,
    },
    /// A plan is damaged.
    #[error("{}: not a plan.json that this version of plimsoll can read: {error}", path.display())]
    Plan {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        error: serde_json::Error,
    },
    /// The folder belongs to a comparison. Remedy: give the folders of its runs.
    #[error(
        "{} is the folder of a comparison, not of a run; `plimsoll report {}` shows it",
        .0.display(), .0.display()
    )]
    IsComparison(PathBuf),
    /// The same run was given twice. Remedy: remove one; a run is not its own repeat.
    #[error("the run {} is given twice, as {}; each run counts once", .0.display(), .1.display())]
    Twice(PathBuf, PathBuf),
    /// A gate cannot be read.
    #[error("gate: {0}")]
    Gate(#[from] MetricsError),
    /// A name of `--allow-different` is unknown.
    #[error("`{name}` is nothing that can differ; known are {known}")]
    UnknownDifference {
        /// Unknown name.
        name: String,
        /// Known names.
        known: String,
    },
    /// `--regress-pct` with more than one run on a side. Remedy: remove it.
    #[error(
        "--regress-pct is the simple rule for one old and one new run, but {0} + {1} were given; omit it to use gates"
    )]
    SimpleRule(usize, usize),
}

impl CompareError {
    /// Whether the call was wrong, rather than the state of a file.
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
