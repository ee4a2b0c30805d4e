//! OpenAI's Chat Completions API: request, response, chunk, usage, error. Source: the public API
//! reference, "Create chat completion" and "The chat completion chunk object".

use serde::{Deserialize, Serialize};

use super::{Content, ContentText, CowStr, JsonText, RawJson, lenient, lenient_members};

#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) model: CowStr<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_completion_tokens: Option<u64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) stop: Option<Content<'a, CowStr<'a>>>,
    pub(crate) stream: Option<bool>,
    pub(crate) stream_options: Option<StreamOptions>,
    pub(crate) tools: Option<Vec<Tool<'a>>>,
    pub(crate) tool_choice: Option<RawJson<'a>>,
    pub(crate) parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing)]
    pub(crate) n: Option<u64>,
    pub(crate) user: Option<CowStr<'a>>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: Option<bool>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: CowStr<'a>,
    #[serialize_always]
    pub(crate) content: Option<Content<'a, Part<'a>>>,
    #[serde(skip_serializing)]
    pub(crate) refusal: Option<CowStr<'a>>,
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    pub(crate) tool_call_id: Option<CowStr<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    pub(crate) text: Option<CowStr<'a>>,
    #[serde(skip_serializing)]
    pub(crate) refusal: Option<CowStr<'a>>,
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
    #[serde(rename = "type", default)]
    pub(crate) kind: CowStr<'a>,
    pub(crate) function: FunctionCall<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(crate) name: CowStr<'a>,
    /// JSON inside a string.
    pub(crate) arguments: CowStr<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    pub(crate) function: Option<Function<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: CowStr<'a>,
    pub(crate) description: Option<CowStr<'a>>,
    pub(crate) parameters: Option<RawJson<'a>>,
}

/// `tool_choice` as an object, which names a tool.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct NamedToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    pub(crate) function: FunctionName<'a>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct FunctionName<'a> {
    #[serde(borrow)]
    pub(crate) name: CowStr<'a>,
}

lenient_members! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
    pub(crate) struct Usage {
        pub(crate) prompt_tokens: u64,
        pub(crate) completion_tokens: u64,
        pub(crate) total_tokens: u64,
        pub(crate) prompt_tokens_details: Option<PromptDetails>,
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
    pub(crate) struct PromptDetails {
        pub(crate) cached_tokens: Option<u64>,
    }

    /// A whole response or an event of a stream, as an upstream sends it. A message of a whole
    /// response has the members of a delta.
    #[derive(Debug, Deserialize)]
    pub(crate) struct Answer<'a> {
        pub(crate) id: CowStr<'a>,
        pub(crate) model: CowStr<'a>,
        pub(crate) choices: Vec<AnswerChoice<'a>>,
        pub(crate) usage: Option<Usage>,
        pub(crate) object: CowStr<'a>,
        pub(crate) error: Option<RawJson<'a>>,
        /// The message of an error answer.
        pub(crate) message: Option<CowStr<'a>>,
    }

    #[derive(Debug, Deserialize)]
    pub(crate) struct AnswerChoice<'a> {
        pub(crate) index: u64,
        pub(crate) delta: Delta<'a>,
        pub(crate) message: Delta<'a>,
        pub(crate) finish_reason: Option<CowStr<'a>>,
    }

    #[derive(Debug, Default, Deserialize)]
    pub(crate) struct Delta<'a> {
        pub(crate) content: ContentText<'a>,
        pub(crate) refusal: Option<CowStr<'a>>,
        pub(crate) tool_calls: Vec<ToolDelta<'a>>,
    }

    #[derive(Debug, Deserialize)]
    pub(crate) struct ToolDelta<'a> {
        pub(crate) index: Option<u64>,
        pub(crate) id: Option<CowStr<'a>>,
        pub(crate) function: FunctionCallDelta<'a>,
    }

    #[derive(Debug, Default, Deserialize)]
    pub(crate) struct FunctionCallDelta<'a> {
        pub(crate) name: Option<CowStr<'a>>,
        pub(crate) arguments: JsonText<'a>,
    }

    /// Token counts of the Responses API.
    #[derive(Clone, Copy, Debug, Deserialize)]
    pub(crate) struct ResponsesUsage {
        pub(crate) input_tokens: u64,
        pub(crate) output_tokens: u64,
        pub(crate) input_tokens_details: Option<PromptDetails>,
    }
}

impl ToolDelta<'_> {
    /// The id, unless it is empty.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| !id.is_empty())
    }

    /// The function's name, unless it is empty.
    pub(crate) fn name(&self) -> Option<&str> {
        self.function.name.as_deref().filter(|name| !name.is_empty())
    }
}
