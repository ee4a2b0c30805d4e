//! Writes and reads `summary.json`.

use plimsoll_metrics::RunSummary;
use plimsoll_metrics::summary::{OLDER_SCHEMAS, SCHEMA};
use serde::Deserialize;

use crate::error::ReportError;

/// The summary as indented JSON, with a final newline.
///
/// # Errors
/// [`ReportError::Json`], which a summary built by this tool does not cause.
pub fn json(summary: &RunSummary) -> Result<String, ReportError> {
    let mut text = serde_json::to_string_pretty(summary).map_err(ReportError::Json)?;
    text.push('\n');
    Ok(text)
}

/// Reads what [`json`] wrote, in this version or an earlier one.
///
/// # Errors
/// [`ReportError::Layout`] for a summary of another layout, [`ReportError::Summary`] for anything
/// else.
pub fn read_json(bytes: &[u8]) -> Result<RunSummary, ReportError> {
    #[derive(Deserialize)]
    struct Layout {
        schema: String,
    }
    let layout: Layout = serde_json::from_slice(bytes).map_err(ReportError::Summary)?;
    if layout.schema != SCHEMA && !OLDER_SCHEMAS.contains(&&*layout.schema) {
        return Err(ReportError::Layout { found: layout.schema, known: SCHEMA });
    }
    let summary = serde_json::from_slice(bytes).map_err(ReportError::Summary)?;
    Ok(RunSummary { schema: SCHEMA.to_owned(), ..summary })
}
