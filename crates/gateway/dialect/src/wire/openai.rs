//! OpenAI's Chat Completions API: request, response, chunk, usage, error. Source: the public API
//! reference, "Create chat completion" and "The chat completion chunk object".

use serde::{Deserialize, Serialize};

use super::{Content, CowStr, RawJson};

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) model: CowStr<'a>,
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
    pub(crate) stop: Option<Content<'a, CowStr<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream_options: Option<StreamOptions>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<Tool<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_choice: Option<RawJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing)]
    pub(crate) n: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<CowStr<'a>>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: Option<bool>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: CowStr<'a>,
    #[serde(borrow, default)]
    pub(crate) content: Option<Content<'a, Part<'a>>>,
    #[serde(borrow, skip_serializing)]
    pub(crate) refusal: Option<CowStr<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<CowStr<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<CowStr<'a>>,
    #[serde(borrow, skip_serializing)]
    pub(crate) refusal: Option<CowStr<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) image_url: Option<ImageUrl<'a>>,
}

impl<'a> Part<'a> {
    pub(crate) fn text(text: CowStr<'a>) -> Self {
        Self { kind: "text".into(), text: Some(text), ..Self::default() }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ImageUrl<'a> {
    #[serde(borrow)]
    pub(crate) url: CowStr<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(crate) id: CowStr<'a>,
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: CowStr<'a>,
    #[serde(borrow)]
    pub(crate) function: FunctionCall<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(crate) name: CowStr<'a>,
    /// JSON inside a string.
    #[serde(borrow)]
    pub(crate) arguments: CowStr<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    #[serde(borrow)]
    pub(crate) function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: CowStr<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<CowStr<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) parameters: Option<RawJson<'a>>,
}

/// `tool_choice` as an object, which names a tool.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct NamedToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    #[serde(borrow)]
    pub(crate) function: FunctionName<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FunctionName<'a> {
    #[serde(borrow)]
    pub(crate) name: CowStr<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Response<'a> {
    #[serde(borrow)]
    pub(crate) id: CowStr<'a>,
    #[serde(borrow, default)]
    pub(crate) object: CowStr<'a>,
    #[serde(default)]
    pub(crate) created: u64,
    #[serde(borrow)]
    pub(crate) model: CowStr<'a>,
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
    pub(crate) finish_reason: Option<CowStr<'a>>,
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

/// An event of a stream: a chunk or an error.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(crate) id: CowStr<'a>,
    #[serde(borrow, default)]
    pub(crate) model: CowStr<'a>,
    #[serde(borrow, default)]
    pub(crate) choices: Vec<ChunkChoice<'a>>,
    pub(crate) usage: Option<Usage>,
    #[serde(borrow)]
    pub(crate) error: Option<ErrorObject<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChunkChoice<'a> {
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(borrow, default)]
    pub(crate) delta: Delta<'a>,
    #[serde(borrow)]
    pub(crate) finish_reason: Option<CowStr<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) content: Option<CowStr<'a>>,
    #[serde(borrow)]
    pub(crate) refusal: Option<CowStr<'a>>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<ToolDelta<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolDelta<'a> {
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(borrow)]
    pub(crate) id: Option<CowStr<'a>>,
    #[serde(borrow)]
    pub(crate) function: Option<FunctionCallDelta<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FunctionCallDelta<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<CowStr<'a>>,
    #[serde(borrow)]
    pub(crate) arguments: Option<CowStr<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ErrorEnvelope<'a> {
    #[serde(borrow)]
    pub(crate) error: ErrorObject<'a>,
}

/// The error object of an error response or event.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorObject<'a> {
    #[serde(borrow, default)]
    pub(crate) message: Option<CowStr<'a>>,
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Option<CowStr<'a>>,
    /// A string at OpenAI, a number at some compatible servers.
    #[serde(borrow, default)]
    pub(crate) code: Option<RawJson<'a>>,
}

/// Token counts of the Responses API.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ResponsesUsage {
    #[serde(default)]
    pub(crate) input_tokens: u64,
    #[serde(default)]
    pub(crate) output_tokens: u64,
    pub(crate) input_tokens_details: Option<PromptDetails>,
}
