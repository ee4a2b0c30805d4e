//! Why shards cannot be merged.

use std::io;
use std::path::PathBuf;

use plimsoll_metrics::MetricsError;

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
        /// A folder that says so.
        folder: PathBuf,
    },
    /// A histogram cannot be encoded.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// Rows cannot be written.
    #[error("cannot write the rows")]
    Write(#[source] io::Error),
}
