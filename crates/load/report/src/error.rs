//! Errors of this crate.

/// An error of writing a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A summary could not be written as CSV. Remedy: none; writing to memory does not fail.
    #[error("the summary cannot be written as CSV: {0}")]
    Csv(String),
}
