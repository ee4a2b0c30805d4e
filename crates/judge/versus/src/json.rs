//! Writes and reads `versus.json`.

use plimsoll_run_files::{RunFileError, read_stored};

use crate::result::{SCHEMA, Versus};

/// Formats the result as indented JSON with a final newline.
///
/// # Errors
/// Fails if serde does, which a result of [`crate::judge`] does not cause.
pub fn json(versus: &Versus) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(versus)? + "\n")
}

/// Parses the output of [`json`].
///
/// # Errors
/// [`RunFileError`] if the file is damaged or has another layout.
pub fn read_json(bytes: &[u8]) -> Result<Versus, RunFileError> {
    read_stored(bytes, SCHEMA)
}
