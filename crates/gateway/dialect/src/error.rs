//! The errors of this crate.

/// A request, a response or a stream breaks its dialect's format or cannot be translated. A bad
/// request gets status 400 with this text, which names the field; a bad response gets 502.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// The request's bytes are not UTF-8: send JSON in UTF-8.
    #[error("the body is not valid UTF-8 at byte {offset}; send JSON in UTF-8")]
    NotUtf8 {
        /// The position of the first invalid byte.
        offset: usize,
    },
    /// Objects and arrays are nested deeper than the bound: flatten the request.
    #[error("the body is nested deeper than {most} levels; flatten it")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// The request is not JSON. The text says where.
    #[error("the body could not be read as JSON: {0}")]
    Malformed(String),
    /// A required field is absent or null: send it.
    #[error("{field}: this field is required")]
    Missing {
        /// The path of the field.
        field: String,
    },
    /// A field has a wrong type or value, or occurs twice: send what the text asks for.
    #[error("{field}: {problem}")]
    Invalid {
        /// The path of the field.
        field: String,
        /// The reason.
        problem: String,
    },
    /// The upstream's dialect has no equivalent for this: leave it out, or choose a model of a
    /// provider that uses the caller's dialect.
    #[error("{field}: {what} cannot be translated for the model's provider; leave it out")]
    Unsupported {
        /// The path of the field.
        field: String,
        /// The feature that has no equivalent.
        what: String,
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
    /// An event of the upstream's stream is longer than the limit. Check the upstream.
    #[error("an event of the upstream's stream is longer than {most} bytes")]
    EventTooLong {
        /// The limit in bytes.
        most: usize,
    },
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass temporaries; borrowing them would only add noise"
)]
impl DialectError {
    /// The HTTP status for this error: 400 if the request is at fault, 502 if the upstream is.
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotUtf8 { .. }
            | Self::TooDeep { .. }
            | Self::Malformed(_)
            | Self::Missing { .. }
            | Self::Invalid { .. }
            | Self::Unsupported { .. } => 400,
            Self::InvalidResponse(_)
            | Self::Reported(_)
            | Self::Truncated
            | Self::EventTooLong { .. } => 502,
        }
    }

    /// The path of the field at fault, for `param` in OpenAI's error object.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Missing { field }
            | Self::Invalid { field, .. }
            | Self::Unsupported { field, .. } => Some(field),
            _ => None,
        }
    }

    pub(crate) fn invalid(field: impl ToString, problem: impl ToString) -> Self {
        Self::Invalid { field: field.to_string(), problem: problem.to_string() }
    }

    pub(crate) fn missing(field: impl ToString) -> Self {
        Self::Missing { field: field.to_string() }
    }

    pub(crate) fn unsupported(field: impl ToString, what: impl ToString) -> Self {
        Self::Unsupported { field: field.to_string(), what: what.to_string() }
    }
}
