//! Errors of this crate.

/// An error in a threshold, a band, a gate or a stored histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// Two bounds that make no bands. Remedy: write the target first and the wider bound after a
    /// bar.
    #[error("`{expression}`: {cause}; write it like `p(95)<10ms|20ms`, the target first")]
    Band {
        /// The expression.
        expression: String,
        /// The cause.
        cause: &'static str,
    },
    /// A gate that cannot be read. Remedy: follow the example.
    #[error(
        "`{gate}`: {cause}; write it like `ttft.p99: 10%`, `throughput: 2%` or `error_rate: 0.1pp`"
    )]
    Gate {
        /// The gate as written.
        gate: String,
        /// The cause.
        cause: String,
    },
    /// A threshold names a metric that does not exist. Remedy: use a name of the reference page.
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
    /// The expression is not an aggregate, a comparison and a bound. Remedy: follow the example.
    #[error("`{expression}` is not a threshold for `{metric}`: {cause}; write it like `{example}`")]
    Expression {
        /// The metric.
        metric: &'static str,
        /// The text.
        expression: String,
        /// The cause.
        cause: String,
        /// A correct example.
        example: &'static str,
    },
    /// The bound has the wrong unit. Remedy: write it in the unit that the message names.
    #[error(
        "`{expression}`: `{bound}` is not a bound for `{metric}`, which is measured in {unit}; write it like `{example}`"
    )]
    Unit {
        /// The metric.
        metric: &'static str,
        /// The text.
        expression: String,
        /// The part with the wrong unit.
        bound: String,
        /// The unit of the metric.
        unit: &'static str,
        /// A correct example.
        example: &'static str,
    },
    /// A histogram in a summary cannot be read. Remedy: use the summary as the tool wrote it.
    #[error("a histogram of the summary cannot be read ({0}): the file was changed or cut")]
    DecodeHistogram(String),
    /// A histogram could not be written: it holds more counts than 63 bits. Remedy: none.
    #[error("a histogram cannot be written: {0}")]
    EncodeHistogram(String),
}
