//! What the dialogue dialects have in common, and the words in which they differ.

/// The fixed JSON text of one dialect, around the parts that change from turn to turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grammar {
    /// Opens the member that holds the system prompt; `None`: it is the first message.
    pub(super) system: Option<&'static str>,
    /// Opens the list of messages.
    pub(super) messages: &'static str,
    /// Opens one message, up to the value of its role.
    pub(super) message: &'static str,
    /// Opens the most output tokens.
    pub(super) limit: &'static str,
    /// The most output tokens where the turn names none but the dialect demands a number.
    pub(super) default_limit: Option<u32>,
    /// Asks for a stream, and for usage at its end.
    pub(super) stream: &'static str,
}

pub(super) const OPENAI_CHAT: Grammar = Grammar {
    system: None,
    messages: r#","messages":["#,
    message: r#"{"role":""#,
    limit: r#","max_tokens":"#,
    default_limit: None,
    stream: r#","stream":true,"stream_options":{"include_usage":true}"#,
};

pub(super) const OPENAI_CHAT_RENAMED_LIMIT: Grammar =
    Grammar { limit: r#","max_completion_tokens":"#, ..OPENAI_CHAT };

pub(super) const OPENAI_RESPONSES: Grammar = Grammar {
    system: Some(r#","instructions":""#),
    messages: r#","input":["#,
    message: r#"{"type":"message","role":""#,
    limit: r#","max_output_tokens":"#,
    default_limit: None,
    stream: r#","stream":true"#,
};

pub(super) const ANTHROPIC_MESSAGES: Grammar = Grammar {
    system: Some(r#","system":""#),
    messages: r#","messages":["#,
    message: r#"{"role":""#,
    limit: r#","max_tokens":"#,
    default_limit: Some(1024),
    stream: r#","stream":true"#,
};
