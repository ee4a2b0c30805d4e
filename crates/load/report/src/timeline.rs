//! Writes and reads `timeline.json`.

use plimsoll_metrics::RunTimeline;
use plimsoll_metrics::timeline::SCHEMA;
use serde::Deserialize;

use crate::error::ReportError;

/// The timeline as JSON in one line, with a final newline.
///
/// # Errors
/// [`ReportError::Json`], which a timeline built by this tool does not cause.
pub fn timeline_json(timeline: &RunTimeline) -> Result<String, ReportError> {
    let mut text = serde_json::to_string(timeline).map_err(ReportError::Json)?;
    text.push('\n');
    Ok(text)
}

/// Reads what [`timeline_json`] wrote.
///
/// # Errors
/// [`ReportError::Layout`] for a timeline of another layout, [`ReportError::Summary`] for anything
/// else.
pub fn read_timeline(bytes: &[u8]) -> Result<RunTimeline, ReportError> {
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
