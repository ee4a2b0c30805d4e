//! Writes and reads `timeline.json`.

use plimsoll_metrics::RunTimeline;
use plimsoll_metrics::timeline::SCHEMA;

use crate::error::RunFileError;
use crate::stored;

/// The timeline as JSON in one line, with a final newline.
///
/// # Errors
/// [`RunFileError::Write`], which a timeline built by this tool does not cause.
pub fn timeline_json(timeline: &RunTimeline) -> Result<String, RunFileError> {
    stored::to_line(timeline)
}

/// Reads what [`timeline_json`] wrote.
///
/// # Errors
/// [`RunFileError::Layout`] for a timeline of another layout, [`RunFileError::Read`] for anything
/// else.
pub fn read_timeline(bytes: &[u8]) -> Result<RunTimeline, RunFileError> {
    stored::read(bytes, SCHEMA)
}
