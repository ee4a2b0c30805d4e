//! The settings and the progress of a stream translation.

/// The settings of a stream translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSettings {
    /// For OpenAI callers: the creation time of every chunk, in seconds since 1970.
    pub created: u64,
    /// For OpenAI callers: whether the request asks for usage
    /// ([`Streaming::WithUsage`](crate::Streaming::WithUsage)).
    pub include_usage: bool,
    /// For Anthropic callers: the prompt tokens to report in the first event, before OpenAI reports
    /// any. The exact number follows at the end.
    pub prompt_tokens: u64,
}

/// The progress of a stream translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    /// The last event was translated. Later events are ignored.
    Finished,
    /// An error event was translated, or an event could not be translated.
    Failed,
}
