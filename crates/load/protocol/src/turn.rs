//! The content of one turn, independent of any wire format.

use std::sync::Arc;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A text made of pieces, so that a piece shared by many prompts is stored once.
///
/// The text is the concatenation of its pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Shared pieces, each with the text before it.
    shared: Vec<(String, Arc<str>)>,
    /// The text after the shared pieces.
    end: String,
}

impl Text {
    /// The empty text.
    pub const fn new() -> Self {
        Self { shared: Vec::new(), end: String::new() }
    }

    /// Appends a piece that other texts share.
    pub fn share(&mut self, piece: Arc<str>) {
        self.shared.push((std::mem::take(&mut self.end), piece));
    }

    /// The end of the text, to append text that is not shared.
    pub const fn end(&mut self) -> &mut String {
        &mut self.end
    }

    /// The pieces in order, none of them empty.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let shared = self.shared.iter().flat_map(|(own, shared)| [own.as_str(), shared]);
        shared.chain([self.end.as_str()]).filter(|piece| !piece.is_empty())
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.pieces().map(str::len).sum()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.pieces().next().is_none()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut whole = Self::new();
        whole.end().push_str(text);
        whole
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

/// A call of a tool that a model asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id, by which the result names it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: JSON, as the model wrote it.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The content.
    pub text: Arc<str>,
}

/// One message of a dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content.
    pub text: Text,
    /// Of the model: the tools that it calls after the text.
    pub tool_calls: Vec<ToolCall>,
    /// Of the user: the results of the calls in the message before, which come before the text.
    pub tool_results: Vec<ToolResult>,
}

impl Message {
    /// A message without tools.
    pub const fn new(role: Role, text: Text) -> Self {
        Self { role, text, tool_calls: Vec::new(), tool_results: Vec::new() }
    }
}

/// A plain HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpContent {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Path and query; empty for the target's own path.
    pub path: String,
    /// Headers of this request only.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
}

/// The content of a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestContent<'a> {
    /// A dialogue for the model to continue.
    Chat {
        /// The system prompt.
        system: Option<&'a Text>,
        /// The dialogue so far, the newest message last.
        messages: &'a [Message],
    },
    /// Texts to embed.
    Embed {
        /// Each input gets one vector.
        inputs: &'a [Text],
    },
    /// Any HTTP request.
    Http(&'a HttpContent),
}

/// One request of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The content of the request.
    pub content: RequestContent<'a>,
    /// Whether to request a streamed response.
    pub stream: bool,
    /// The output token limit.
    pub max_tokens: Option<u32>,
}
