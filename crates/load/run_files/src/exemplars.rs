//! Writes and reads `exemplars.json`.

use plimsoll_metrics::RunExemplars;
use plimsoll_metrics::exemplars::SCHEMA;

use crate::error::RunFileError;
use crate::stored;

/// The exemplars as JSON in one line, with a final newline.
///
/// # Errors
/// [`RunFileError::Write`], which exemplars built by this tool do not cause.
pub fn exemplars_json(exemplars: &RunExemplars) -> Result<String, RunFileError> {
    stored::to_line(exemplars)
}

/// Reads what [`exemplars_json`] wrote.
///
/// # Errors
/// [`RunFileError::Layout`] for another layout, [`RunFileError::Read`] for anything else.
pub fn read_exemplars(bytes: &[u8]) -> Result<RunExemplars, RunFileError> {
    stored::read(bytes, SCHEMA)
}
