//! Files and mappings that are refused.

/// Why a file cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Convert the file to UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// Split the file.
    #[error("is larger than 8 MiB")]
    TooLarge,
    /// Write the figures as a Markdown or CSV table with a heading for each column, or explain its
    /// headings with `--map`.
    #[error("has no table with known columns{0}")]
    NoTable(String),
    /// See `plimsoll audit --help` for the meanings.
    #[error("invalid mapping `{0}`: expected HEADING=MEANING, such as `Antwortzeit=mean:ms`")]
    Mapping(String),
}
