//! The fixed JSON text of each chat dialect.

/// The fixed JSON text of one dialect, around the parts that differ between turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonTemplate {
    /// Start of the member with the system prompt; `None` if the prompt is the first message.
    pub(super) system: Option<&'static str>,
    /// Start of the list of messages.
    pub(super) messages: &'static str,
    /// Start of one message, up to the value of its role.
    pub(super) message: &'static str,
    /// Start of the output token limit.
    pub(super) limit: &'static str,
    /// Default output token limit, for dialects that require one.
    pub(super) default_limit: Option<u32>,
    /// Requests a stream, with usage at its end.
    pub(super) stream: &'static str,
    /// Format of tool calls and their results.
    pub(super) tools: ToolFormat,
}

/// Format of tool calls and their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolFormat {
    /// `tool_calls` in the model's message, and a message of the role `tool` for each result.
    Messages,
    /// Separate items next to the messages.
    Items,
    /// Blocks in the content of the messages.
    Blocks,
}

impl JsonTemplate {
    /// Requests a stream without further options, in every dialect.
    pub(super) const STREAM_ONLY: &'static str = r#","stream":true"#;
}

pub(super) const OPENAI_CHAT: JsonTemplate = JsonTemplate {
    system: None,
    messages: r#","messages":["#,
    message: r#"{"role":""#,
    limit: r#","max_tokens":"#,
    default_limit: None,
    stream: r#","stream":true,"stream_options":{"include_usage":true}"#,
    tools: ToolFormat::Messages,
};

pub(super) const OPENAI_CHAT_COMPLETION_LIMIT: JsonTemplate =
    JsonTemplate { limit: r#","max_completion_tokens":"#, ..OPENAI_CHAT };

/// A single text replaces the messages.
pub(super) const OPENAI_COMPLETIONS: JsonTemplate =
    JsonTemplate { messages: r#","prompt":""#, message: "", ..OPENAI_CHAT };

pub(super) const OPENAI_RESPONSES: JsonTemplate = JsonTemplate {
    system: Some(r#","instructions":""#),
    messages: r#","input":["#,
    message: r#"{"type":"message","role":""#,
    limit: r#","max_output_tokens":"#,
    default_limit: None,
    stream: r#","stream":true"#,
    tools: ToolFormat::Items,
};

pub(super) const ANTHROPIC_MESSAGES: JsonTemplate = JsonTemplate {
    system: Some(r#","system":""#),
    messages: r#","messages":["#,
    message: r#"{"role":""#,
    limit: r#","max_tokens":"#,
    default_limit: Some(1024),
    stream: r#","stream":true"#,
    tools: ToolFormat::Blocks,
};
