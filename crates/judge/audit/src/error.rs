//! Errors for rejected files and mappings.

/// Why a file cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Remedy: convert the file to UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// Remedy: split the file.
    #[error("is larger than 8 MiB")]
    TooLarge,
    /// Remedy: write the figures as a Markdown or CSV table with a heading for each column, or
    /// explain its headings with `--map`.
    #[error("has no table with known columns{0}")]
    NoTable(String),
    /// Remedy: see `plimsoll audit --help` for the meanings.
    #[error("invalid mapping `{0}`: expected HEADING=MEANING, such as `Antwortzeit=mean:ms`")]
    Mapping(String),
}
