//! What the files of one line of JSON have in common: the version of their layout.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::RunFileError;

/// A value as JSON in one line, with a final newline.
pub(crate) fn to_line(value: &impl Serialize) -> Result<String, RunFileError> {
    let mut text = serde_json::to_string(value).map_err(RunFileError::Write)?;
    text.push('\n');
    Ok(text)
}

/// Reads a value of a known layout.
pub(crate) fn read<T: DeserializeOwned>(
    bytes: &[u8],
    known: &'static str,
) -> Result<T, RunFileError> {
    #[derive(Deserialize)]
    struct Layout {
        schema: String,
    }
    let layout: Layout = serde_json::from_slice(bytes).map_err(RunFileError::Read)?;
    if layout.schema != known {
        return Err(RunFileError::Layout { found: layout.schema, known });
    }
    serde_json::from_slice(bytes).map_err(RunFileError::Read)
}
