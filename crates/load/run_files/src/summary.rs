//! Writes and reads `summary.json`.

use plimsoll_metrics::RunSummary;
use plimsoll_metrics::summary::SCHEMA;

use crate::error::RunFileError;
use crate::stored;

/// The summary as indented JSON, with a final newline.
///
/// # Errors
/// [`RunFileError::Write`], which a summary built by this tool does not cause.
pub fn summary_json(summary: &RunSummary) -> Result<String, RunFileError> {
    let mut text = serde_json::to_string_pretty(summary).map_err(RunFileError::Write)?;
    text.push('\n');
    Ok(text)
}

/// Reads what [`summary_json`] wrote.
///
/// # Errors
/// [`RunFileError::Layout`] for a summary of another layout, [`RunFileError::Read`] for anything
/// else.
pub fn read_summary(bytes: &[u8]) -> Result<RunSummary, RunFileError> {
    stored::read(bytes, SCHEMA)
}
