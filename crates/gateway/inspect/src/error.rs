//! Why texts cannot be judged.

/// Why texts cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A bracket or a quote is missing, or there is text outside strings.
    #[error("it is not JSON")]
    Json,
    /// Objects and arrays are nested too deep.
    #[error("it is nested too deep")]
    TooDeep,
    /// The bytes are not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// An event exceeds [`MAX_EVENT_BYTES`](plimsoll_gateway_dialect::MAX_EVENT_BYTES).
    #[error("an event is too large")]
    EventTooLong,
    /// The stream ended within an event.
    #[error("the stream ended within an event")]
    Truncated,
    /// A file whose media type is neither text nor allowed to pass.
    #[error("it holds a file of the type `{0}`")]
    File(String),
}
