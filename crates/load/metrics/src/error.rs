//! Errors of this crate.

/// An error in a limit, a gate or a stored histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// A limit or a gate that cannot be read. Remedy: follow the example.
    #[error("`{limit}`: {cause}; write it like `{example}`")]
    Limit {
        /// The limit as written.
        limit: String,
        /// The cause.
        cause: String,
        /// A correct example.
        example: &'static str,
    },
    /// A limit names a metric that does not exist. Remedy: use a name of the reference page.
    #[error("unknown metric `{name}`; {hint}")]
    UnknownMetric {
        /// The text.
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
    /// The scope in braces cannot be read. Remedy: one tag of the four.
    #[error(
        "`{0}` is not a scope: write one of `{{stage:NAME}}`, `{{scenario:NAME}}`, `{{category:NAME}}`, `{{target:NAME}}`, `{{operation:NAME}}`"
    )]
    Scope(String),
    /// A histogram in a summary cannot be read. Remedy: use the summary as the tool wrote it.
    #[error("a histogram of the summary cannot be read ({0}): the file was changed or cut")]
    DecodeHistogram(String),
    /// A histogram could not be written: it holds more counts than 63 bits. Remedy: none.
    #[error("a histogram cannot be written: {0}")]
    EncodeHistogram(String),
}
