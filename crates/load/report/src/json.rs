//! `summary.json`.

use plimsoll_metrics::RunSummary;
use plimsoll_metrics::summary::SCHEMA;
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

/// Reads what [`json`] wrote.
///
/// # Errors
/// [`ReportError::Layout`] for another version's summary, [`ReportError::Summary`] for anything else.
pub fn read_json(bytes: &[u8]) -> Result<RunSummary, ReportError> {
    #[derive(Deserialize)]
    struct Layout {
        schema: String,
    }
    let layout: Layout = serde_json::from_slice(bytes).map_err(ReportError::Summary)?;
    if layout.schema != SCHEMA {
        return Err(ReportError::Layout { found: layout.schema, known: SCHEMA });
    }
    serde_json::from_slice(bytes).map_err(ReportError::Summary)
}
