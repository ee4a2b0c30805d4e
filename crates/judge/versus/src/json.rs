//! Writes and reads `versus.json`.

use serde::Deserialize;

use crate::result::{SCHEMA, Versus};

/// An error of writing or reading `versus.json`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersusError {
    /// A file is not JSON of the expected layout. Remedy: use the file as Plimsoll wrote it.
    #[error("this is not a versus.json that this version can read: {0}")]
    Json(#[from] serde_json::Error),
    /// A file has an unknown layout. Remedy: use the version that wrote it.
    #[error(
        "the file's layout is `{found}`, and this version reads `{known}`: use the version of plimsoll that wrote it"
    )]
    Layout {
        /// The layout of the file.
        found: String,
        /// The layout of this version.
        known: &'static str,
    },
}

/// The result as indented JSON, with a final newline.
///
/// # Errors
/// [`VersusError::Json`], which a result of [`crate::judge`] does not cause.
pub fn json(versus: &Versus) -> Result<String, VersusError> {
    let mut text = serde_json::to_string_pretty(versus)?;
    text.push('\n');
    Ok(text)
}

/// Reads what [`json`] wrote.
///
/// # Errors
/// [`VersusError::Layout`] for another layout, [`VersusError::Json`] for anything else.
pub fn read_json(bytes: &[u8]) -> Result<Versus, VersusError> {
    #[derive(Deserialize)]
    struct Layout {
        schema: String,
    }
    let layout: Layout = serde_json::from_slice(bytes)?;
    if layout.schema != SCHEMA {
        return Err(VersusError::Layout { found: layout.schema, known: SCHEMA });
    }
    Ok(serde_json::from_slice(bytes)?)
}
