//! The errors of this crate.

/// A request, a response or a stream breaks its dialect's format or cannot be translated. A bad
/// request gets status 400 with this text, which names the field; a bad response gets 502.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// The request cannot be read: it is not UTF-8, not JSON or nested too deep.
    #[error("{0}")]
    Request(String),
    /// A field is missing, has a wrong type or value, occurs twice, or has no equivalent in the
    /// upstream's dialect.
    #[error("{field}: {problem}")]
    Field {
        /// The path of the field.
        field: String,
        /// The reason.
        problem: String,
    },
    /// The upstream's response or event breaks its dialect's format. Check the upstream.
    #[error("the upstream's response could not be read: {0}")]
    InvalidResponse(String),
    /// The upstream answered with status 200 and an error. The text is its message.
    #[error("the upstream answered with an error: {0}")]
    Reported(String),
    /// The upstream's stream ended before its last event. Check the upstream, and retry.
    #[error("the upstream's stream ended before its last event")]
    Truncated,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass temporaries; borrowing them would only add noise"
)]
impl DialectError {
    /// The HTTP status for this error: 400 if the request is at fault, 502 if the upstream is.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Request(_) | Self::Field { .. } => 400,
            Self::InvalidResponse(_) | Self::Reported(_) | Self::Truncated => 502,
        }
    }

    /// The path of the field at fault, for `param` in OpenAI's error object.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Field { field, .. } => Some(field),
            _ => None,
        }
    }

    pub(crate) fn malformed(problem: impl ToString) -> Self {
        Self::Request(format!("the body could not be read as JSON: {}", problem.to_string()))
    }

    pub(crate) fn invalid(field: impl ToString, problem: impl ToString) -> Self {
        Self::Field { field: field.to_string(), problem: problem.to_string() }
    }

    pub(crate) fn missing(field: impl ToString) -> Self {
        Self::invalid(field, "this field is required")
    }

    pub(crate) fn unsupported(field: impl ToString, what: impl std::fmt::Display) -> Self {
        let problem = format!("{what} cannot be translated for the model's provider; leave it out");
        Self::invalid(field, problem)
    }
}
