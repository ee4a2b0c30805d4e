//! Writes and reads `timeline.json`.

use plimsoll_metrics::RunTimeline;
use plimsoll_metrics::timeline::SCHEMA;

use crate::error::ReportError;
use crate::stored;

/// The timeline as JSON in one line, with a final newline.
///
/// # Errors
/// [`ReportError::Json`], which a timeline built by this tool does not cause.
pub fn timeline_json(timeline: &RunTimeline) -> Result<String, ReportError> {
    stored::to_line(timeline)
}

/// Reads what [`timeline_json`] wrote.
///
/// # Errors
/// [`ReportError::Layout`] for a timeline of another layout, [`ReportError::Summary`] for anything
/// else.
pub fn read_timeline(bytes: &[u8]) -> Result<RunTimeline, ReportError> {
    stored::read(bytes, SCHEMA)
}
