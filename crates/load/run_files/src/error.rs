//! Errors of this crate.

use plimsoll_metrics::MetricsError;

/// An error of writing or reading a file of a run's folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFileError {
    /// A file is not JSON of the expected layout. Remedy: use the file as Plimsoll wrote it.
    #[error("this version cannot read it: {0}")]
    Read(serde_json::Error),
    /// A file has an unknown layout. Remedy: read it with the version that wrote it.
    #[error(
        "its layout is `{found}`, and this version reads `{known}`: use the version of plimsoll that wrote it"
    )]
    Layout {
        /// The layout of the file.
        found: String,
        /// The layout of this version.
        known: &'static str,
    },
    /// A file is not as it was written. Remedy: copy it again.
    #[error("its digest does not match")]
    Changed,
    /// A value could not be written as JSON, which is impossible for results of Plimsoll.
    #[error("the summary cannot be written as JSON: {0}")]
    Write(serde_json::Error),
    /// A line is not a row of `results.jsonl`. Remedy: none; the last line of a killed run may
    /// be cut, any other was changed.
    #[error("this is not a row of results.jsonl: {0}")]
    Row(String),
    /// A row names a stage, scenario or target that the plan does not have. Remedy: use the plan of
    /// the same run.
    #[error(
        "a row names the {kind} `{name}`, which the plan does not have: use the plan.json of the same run"
    )]
    UnknownName {
        /// `stage`, `scenario` or `target`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A file is not `pairs.bin` of a layout that this version reads. Remedy: use the version that
    /// wrote it.
    #[error("this version cannot read it: {0}")]
    Pairs(String),
    /// A file is not `counts.bin` of this version, or damaged. Remedy: use the version that wrote
    /// it, or copy the file again.
    #[error("this version cannot read it: {0}")]
    Counts(String),
    /// A line is longer than any row. Remedy: the file is damaged; cut the line out.
    #[error("line {line} is longer than {limit} bytes, which no row is: the file is damaged")]
    LongLine {
        /// Its number, from 1.
        line: u64,
        /// The longest line that is read.
        limit: usize,
    },
    /// A summary could not be rebuilt.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}
