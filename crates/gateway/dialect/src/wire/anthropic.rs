//! Anthropic's messages on the wire: request, answer, events, usage, error. Source: the public API
//! reference, "Messages" and "Streaming messages".

use serde::{Deserialize, Serialize};

use super::{Content, Json, Str};

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) model: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<Content<'a, Block<'a>>>,
    #[serde(borrow)]
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<f64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) stop_sequences: Option<Vec<Str<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<bool>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<Tool<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_choice: Option<ToolChoice<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Metadata<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Metadata<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<Str<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: Str<'a>,
    #[serde(borrow)]
    pub(crate) content: Content<'a, Block<'a>>,
}

/// A content block of any kind; which members it has depends on the kind.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<Source<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Json<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Content<'a, Inner<'a>>>,
}

impl<'a> Block<'a> {
    pub(crate) fn text(text: Str<'a>) -> Self {
        Self { kind: "text".into(), text: Some(text), ..Self::default() }
    }
}

/// A block inside a tool's result.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Inner<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<Str<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Source<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<Str<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Tool<'a> {
    /// None or `custom` for the caller's own tools; others run at Anthropic.
    #[serde(borrow, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) name: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) input_schema: Option<Json<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Str<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disable_parallel_tool_use: Option<bool>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Answer<'a> {
    #[serde(borrow)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) role: Str<'a>,
    #[serde(borrow)]
    pub(crate) model: Str<'a>,
    #[serde(borrow)]
    pub(crate) content: Vec<Block<'a>>,
    #[serde(borrow)]
    pub(crate) stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) stop_sequence: Option<Str<'a>>,
    #[serde(default)]
    pub(crate) usage: Usage,
}

/// Members that an event does not carry are None; in an answer all are there.
#[expect(clippy::struct_field_names, reason = "the names are those of the wire")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_creation_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
}

/// An event of a stream; which members it has depends on the kind.
#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow)]
    pub(crate) message: Option<Started<'a>>,
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(borrow)]
    pub(crate) content_block: Option<Block<'a>>,
    #[serde(borrow)]
    pub(crate) delta: Option<Delta<'a>>,
    pub(crate) usage: Option<Usage>,
    #[serde(borrow)]
    pub(crate) error: Option<Failure<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Started<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) model: Str<'a>,
    #[serde(default)]
    pub(crate) usage: Usage,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) partial_json: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) stop_reason: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody<'a> {
    #[serde(borrow)]
    pub(crate) error: Failure<'a>,
}

/// What is inside an error's envelope.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(crate) message: Option<Str<'a>>,
}
