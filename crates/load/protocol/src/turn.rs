//! The content of one turn, independent of any wire format.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::rpc;
pub use crate::text::Text;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A tool call requested by a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Id of the call, which the result repeats.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments: JSON, as the model wrote it.
    pub arguments: String,
}

impl ToolCall {
    /// The arguments if they are a JSON object, as providers require, or else an empty object. A
    /// model may have stopped in the middle of them.
    pub fn arguments_object(&self) -> &str {
        let text = self.arguments.trim();
        let is_object = text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
        if is_object { text } else { "{}" }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// The content.
    pub text: Arc<str>,
}

/// The parts of a response beside its text and tool calls, which the next request repeats, such as
/// the signatures of thoughts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Members of the message.
    pub members: Map<String, Value>,
    /// Members of its tool calls, by the position of the call.
    pub calls: BTreeMap<usize, Map<String, Value>>,
    /// Blocks or items in front of the text.
    pub items: Vec<Value>,
}

/// One message of a dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content.
    pub text: Text,
    /// The model's tool calls, which follow the text.
    pub tool_calls: Vec<ToolCall>,
    /// Further parts of the model's message.
    pub kept: Option<Arc<Kept>>,
    /// The user's results of the calls in the previous message, which precede the text.
    pub tool_results: Vec<ToolResult>,
    /// Recorded messages as JSON, one or several with commas between them, which are sent as they
    /// are in place of all else.
    pub recorded: Option<Arc<str>>,
}

impl Message {
    /// Creates a message without tools.
    pub const fn new(role: Role, text: Text) -> Self {
        Self {
            role,
            text,
            tool_calls: Vec::new(),
            kept: None,
            tool_results: Vec::new(),
            recorded: None,
        }
    }

    /// Whether it has more than a text.
    pub(crate) fn has_parts(&self) -> bool {
        !self.tool_calls.is_empty() || !self.tool_results.is_empty() || self.kept.is_some()
    }

    /// Messages as they were recorded.
    pub fn recorded(json: Arc<str>) -> Self {
        Self { recorded: Some(json), ..Self::new(Role::User, Text::new()) }
    }
}

/// The members of a recorded request beside its messages. Those of the encoder are added where the
/// record has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRequest {
    /// The model, unless the encoder has one.
    pub model: Option<String>,
    /// All others, as recorded.
    pub members: Arc<Map<String, Value>>,
    /// Headers of this request only.
    pub headers: Vec<(String, String)>,
}

impl RecordedRequest {
    /// Whether it asks for a stream, if it is specified.
    pub fn streams(&self) -> Option<bool> {
        self.members.get("stream")?.as_bool()
    }

    /// Its output token limit.
    pub fn limit(&self) -> Option<u64> {
        const NAMES: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        NAMES.iter().find_map(|name| self.members.get(*name)?.as_u64())
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
    /// A request to a model as it was recorded.
    Recorded {
        /// All but its messages.
        request: &'a RecordedRequest,
        /// The dialogue so far; none where the prompt is another member.
        messages: &'a [Message],
    },
    /// Texts to embed.
    Embed {
        /// Each input gets one vector.
        inputs: &'a [Text],
    },
    /// Any HTTP request.
    Http(&'a HttpContent),
    /// A message to a tool server or an agent.
    Rpc(&'a rpc::Request),
}

/// One request of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The content of the request.
    pub content: RequestContent<'a>,
    /// Whether to request a streamed response.
    pub stream: bool,
    /// Output token limit.
    pub max_tokens: Option<u32>,
}

impl Turn<'_> {
    /// Headers of this turn only, which add to or replace the dialect's.
    pub fn own_headers(&self) -> Cow<'_, [(String, String)]> {
        match self.content {
            RequestContent::Http(content) => Cow::Borrowed(&content.headers),
            RequestContent::Rpc(request) => Cow::Owned(request.headers()),
            RequestContent::Recorded { request, .. } => Cow::Borrowed(&request.headers),
            RequestContent::Chat { .. } | RequestContent::Embed { .. } => Cow::Borrowed(&[]),
        }
    }
}
