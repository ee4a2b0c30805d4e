//! Errors at the start. Later errors are counted (`Stats`) and reported (`Notice`).

use std::io;
use std::path::PathBuf;

/// The audit could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The file cannot be opened for appending: choose a file in a folder that exists and is
    /// writable.
    #[error(
        "cannot write the audit file {}: {source}; choose a file in a folder that exists and is \
         writable", path.display()
    )]
    File {
        /// The file that was asked for.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The address of `ClickHouse` is not of the form
    /// `http://[USER:PASSWORD@]HOST[:PORT]/[DATABASE.]TABLE`. The text never repeats the address,
    /// which may contain a password.
    #[error(
        "the address of ClickHouse is wrong: {0}; write it as \
         http://[USER:PASSWORD@]HOST[:PORT]/[DATABASE.]TABLE"
    )]
    ClickHouse(&'static str),
    /// An invalid number in the settings, with its name and the valid range.
    #[error("the settings of the audit are wrong: {0}")]
    Settings(&'static str),
    /// The system refused a thread or an event queue: raise the limits on processes and open files.
    #[error("cannot start the audit's writer: {0}; raise the limits on processes and open files")]
    Writer(#[source] io::Error),
}
