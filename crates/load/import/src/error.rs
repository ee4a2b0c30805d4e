//! Why an import ends.

use std::io;
use std::path::Path;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be read, has an unknown format, a broken row, or nothing to send.
    #[error("{0}")]
    Input(String),
    /// The output cannot be written.
    #[error("cannot write the requests: {0}")]
    Write(#[from] io::Error),
}

impl ImportError {
    pub(crate) fn of(path: &Path, why: &str) -> Self {
        Self::Input(format!("{}: {why}", path.display()))
    }

    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::Input(format!("cannot read {}: {error}", path.display()))
    }
}

impl From<String> for ImportError {
    fn from(why: String) -> Self {
        Self::Input(why)
    }
}
