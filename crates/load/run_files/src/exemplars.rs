//! Writes and reads `exemplars.json`.

use plimsoll_metrics::RunExemplars;
use plimsoll_metrics::exemplars::SCHEMA;

use crate::error::ReportError;
use crate::stored;

/// The exemplars as JSON in one line, with a final newline.
///
/// # Errors
/// [`ReportError::Json`], which exemplars built by this tool do not cause.
pub fn exemplars_json(exemplars: &RunExemplars) -> Result<String, ReportError> {
    stored::to_line(exemplars)
}

/// Reads what [`exemplars_json`] wrote.
///
/// # Errors
/// [`ReportError::Layout`] for another layout, [`ReportError::Summary`] for anything else.
pub fn read_exemplars(bytes: &[u8]) -> Result<RunExemplars, ReportError> {
    stored::read(bytes, SCHEMA)
}
