//! What can be wrong with a request, an answer or a stream.

/// A request, an answer or a stream is not what its dialect says, or has no counterpart in the other
/// dialect. Requests get 400 and the text, which names the field; what an upstream sends gets 502.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// The request's bytes are not UTF-8: send JSON in UTF-8.
    #[error("the body is not valid UTF-8 at byte {offset}; send JSON in UTF-8")]
    NotUtf8 {
        /// Where the first wrong byte is.
        offset: usize,
    },
    /// Objects and arrays are nested deeper than the bound: flatten the request.
    #[error("the body is nested deeper than {most} levels; flatten it")]
    TooDeep {
        /// The bound.
        most: usize,
    },
    /// The request is not JSON. The text says where.
    #[error("the body could not be read as JSON: {0}")]
    Malformed(String),
    /// A field that the dialect demands is absent or null: send it.
    #[error("{field}: this field is required")]
    Missing {
        /// The path of the field.
        field: String,
    },
    /// A field has a wrong type or value, or is there twice: send what the text asks for.
    #[error("{field}: {problem}")]
    Wrong {
        /// The path of the field.
        field: String,
        /// What is the matter with it.
        problem: String,
    },
    /// The upstream speaks the other dialect, which cannot say this: leave it out, or choose a model
    /// of the caller's own dialect.
    #[error("{field}: {what} cannot be said in the dialect of the model's provider; leave it out")]
    NoCounterpart {
        /// The path of the field.
        field: String,
        /// What cannot be said.
        what: String,
    },
    /// The upstream's answer or event is not of its dialect. Look at the upstream.
    #[error("the upstream's answer could not be read: {0}")]
    Answer(String),
    /// The upstream's stream ended before its last event. Look at the upstream; ask again.
    #[error("the upstream's stream ended before its last event")]
    Truncated,
    /// An event of the upstream's stream is longer than the bound. Look at the upstream.
    #[error("an event of the upstream's stream is longer than {most} bytes")]
    EventTooLong {
        /// The bound in bytes.
        most: usize,
    },
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "what is passed is made on the spot; borrowing it would only be noise"
)]
impl DialectError {
    /// The HTTP status to answer with: 400 where the request is at fault, 502 where the upstream is.
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotUtf8 { .. }
            | Self::TooDeep { .. }
            | Self::Malformed(_)
            | Self::Missing { .. }
            | Self::Wrong { .. }
            | Self::NoCounterpart { .. } => 400,
            Self::Answer(_) | Self::Truncated | Self::EventTooLong { .. } => 502,
        }
    }

    /// The path of the field at fault, for `param` of OpenAI's envelope.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Missing { field }
            | Self::Wrong { field, .. }
            | Self::NoCounterpart { field, .. } => Some(field),
            _ => None,
        }
    }

    pub(crate) fn wrong(field: impl ToString, problem: impl ToString) -> Self {
        Self::Wrong { field: field.to_string(), problem: problem.to_string() }
    }

    pub(crate) fn missing(field: impl ToString) -> Self {
        Self::Missing { field: field.to_string() }
    }

    pub(crate) fn no_counterpart(field: impl ToString, what: impl ToString) -> Self {
        Self::NoCounterpart { field: field.to_string(), what: what.to_string() }
    }
}
