//! OpenAI's chat completions on the wire: request, answer, chunk, usage, error. Source: the public API
//! reference, "Create chat completion" and "The chat completion chunk object".

use serde::{Deserialize, Serialize};

use super::{Content, Json, Str};

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) model: Str<'a>,
    #[serde(borrow)]
    pub(crate) messages: Vec<Message<'a>>,
    #[serde(skip_serializing)]
    pub(crate) max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<f64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<Content<'a, Str<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream_options: Option<StreamOptions>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<Tool<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_choice: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing)]
    pub(crate) n: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Str<'a>>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: Option<bool>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) content: Option<Content<'a, Part<'a>>>,
    #[serde(borrow, skip_serializing)]
    pub(crate) refusal: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<Str<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<Str<'a>>,
    #[serde(borrow, skip_serializing)]
    pub(crate) refusal: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) image_url: Option<ImageUrl<'a>>,
}

impl<'a> Part<'a> {
    pub(crate) fn text(text: Str<'a>) -> Self {
        Self { kind: "text".into(), text: Some(text), ..Self::default() }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ImageUrl<'a> {
    #[serde(borrow)]
    pub(crate) url: Str<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Str<'a>,
    #[serde(borrow)]
    pub(crate) function: Call<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Call<'a> {
    #[serde(borrow)]
    pub(crate) name: Str<'a>,
    /// JSON inside a string.
    #[serde(borrow)]
    pub(crate) arguments: Str<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow)]
    pub(crate) function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: Str<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<Str<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) parameters: Option<Json<'a>>,
}

/// `tool_choice` where it is an object.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct NamedTool<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Str<'a>,
    #[serde(borrow)]
    pub(crate) function: ToolName<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ToolName<'a> {
    #[serde(borrow)]
    pub(crate) name: Str<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Answer<'a> {
    #[serde(borrow)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) object: Str<'a>,
    #[serde(default)]
    pub(crate) created: u64,
    #[serde(borrow)]
    pub(crate) model: Str<'a>,
    #[serde(borrow)]
    pub(crate) choices: Vec<Choice<'a>>,
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Choice<'a> {
    pub(crate) index: u64,
    #[serde(borrow)]
    pub(crate) message: Message<'a>,
    #[serde(skip_deserializing)]
    pub(crate) logprobs: Option<()>,
    #[serde(borrow)]
    pub(crate) finish_reason: Option<Str<'a>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Usage {
    #[serde(default)]
    pub(crate) prompt_tokens: u64,
    #[serde(default)]
    pub(crate) completion_tokens: u64,
    #[serde(default)]
    pub(crate) total_tokens: u64,
    pub(crate) prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct PromptDetails {
    pub(crate) cached_tokens: Option<u64>,
}

/// An event of a stream, or the error that took its place.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) model: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) choices: Vec<ChunkChoice<'a>>,
    pub(crate) usage: Option<Usage>,
    #[serde(borrow)]
    pub(crate) error: Option<Failure<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChunkChoice<'a> {
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(borrow, default)]
    pub(crate) delta: Delta<'a>,
    #[serde(borrow)]
    pub(crate) finish_reason: Option<Str<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) content: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) refusal: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<ToolDelta<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolDelta<'a> {
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(borrow)]
    pub(crate) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) function: Option<CallDelta<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CallDelta<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Str<'a>>,
    #[serde(borrow)]
    pub(crate) arguments: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody<'a> {
    #[serde(borrow)]
    pub(crate) error: Failure<'a>,
}

/// What is inside an error's envelope.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure<'a> {
    #[serde(borrow, default)]
    pub(crate) message: Option<Str<'a>>,
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Option<Str<'a>>,
    /// A string at OpenAI, a number at some copies of it.
    #[serde(borrow, default)]
    pub(crate) code: Option<Json<'a>>,
}

/// Usage as the Responses API says it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ResponsesUsage {
    #[serde(default)]
    pub(crate) input_tokens: u64,
    #[serde(default)]
    pub(crate) output_tokens: u64,
    pub(crate) input_tokens_details: Option<PromptDetails>,
}
