//! Anthropic's Messages API: request, response, stream events, usage, error. Source: the public API
//! reference, "Messages" and "Streaming messages".

use serde::{Deserialize, Serialize};

use super::{Content, CowStr, JsonText, RawJson, lenient, lenient_members};

#[serde_with::skip_serializing_none]
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) model: CowStr<'a>,
    pub(crate) system: Option<Content<'a, ContentBlock<'a>>>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) max_tokens: u64,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) stop_sequences: Option<Vec<CowStr<'a>>>,
    pub(crate) stream: Option<bool>,
    pub(crate) tools: Option<Vec<Tool<'a>>>,
    pub(crate) tool_choice: Option<ToolChoice<'a>>,
    pub(crate) metadata: Option<Metadata<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Metadata<'a> {
    #[serde(borrow)]
    pub(crate) user_id: Option<CowStr<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: CowStr<'a>,
    pub(crate) content: Content<'a, ContentBlock<'a>>,
}

/// A content block of any type; its members depend on the type.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ContentBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    pub(crate) text: Option<CowStr<'a>>,
    pub(crate) source: Option<ImageSource<'a>>,
    pub(crate) id: Option<CowStr<'a>>,
    pub(crate) name: Option<CowStr<'a>>,
    pub(crate) input: Option<RawJson<'a>>,
    pub(crate) tool_use_id: Option<CowStr<'a>>,
    pub(crate) content: Option<Content<'a, ToolResultBlock<'a>>>,
}

impl<'a> ContentBlock<'a> {
    pub(crate) fn text(text: CowStr<'a>) -> Self {
        Self { kind: "text".into(), text: Some(text), ..Self::default() }
    }
}

/// A content block inside a tool result.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ToolResultBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<CowStr<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ImageSource<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    pub(crate) media_type: Option<CowStr<'a>>,
    pub(crate) data: Option<CowStr<'a>>,
    pub(crate) url: Option<CowStr<'a>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Tool<'a> {
    /// None or `custom` for the caller's tools; tools of other types run at Anthropic.
    #[serde(borrow, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<CowStr<'a>>,
    pub(crate) name: CowStr<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<CowStr<'a>>,
    pub(crate) input_schema: Option<RawJson<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: CowStr<'a>,
    pub(crate) name: Option<CowStr<'a>>,
    pub(crate) disable_parallel_tool_use: Option<bool>,
}

lenient_members! {
    /// A whole response, as an upstream sends it.
    #[derive(Debug, Deserialize)]
    pub(crate) struct Answer<'a> {
        pub(crate) id: CowStr<'a>,
        #[serde(rename = "type")]
        pub(crate) kind: CowStr<'a>,
        pub(crate) model: CowStr<'a>,
        pub(crate) content: Vec<AnswerBlock<'a>>,
        pub(crate) stop_reason: Option<CowStr<'a>>,
        pub(crate) usage: Usage,
        pub(crate) error: Option<RawJson<'a>>,
    }

    /// A content block of a response: only the translated members.
    #[derive(Debug, Default, Deserialize)]
    pub(crate) struct AnswerBlock<'a> {
        #[serde(rename = "type")]
        pub(crate) kind: CowStr<'a>,
        pub(crate) text: Option<CowStr<'a>>,
        pub(crate) id: Option<CowStr<'a>>,
        pub(crate) name: Option<CowStr<'a>>,
        pub(crate) input: JsonText<'a>,
    }

    /// Token counts. A response has all of them, a stream event only some.
    #[expect(clippy::struct_field_names, reason = "the names of the wire format")]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
    pub(crate) struct Usage {
        pub(crate) input_tokens: Option<u64>,
        pub(crate) cache_creation_input_tokens: Option<u64>,
        pub(crate) cache_read_input_tokens: Option<u64>,
        pub(crate) output_tokens: Option<u64>,
    }

    /// An event of a stream; its members depend on its type.
    #[derive(Debug, Deserialize)]
    pub(crate) struct StreamEvent<'a> {
        #[serde(rename = "type")]
        pub(crate) kind: CowStr<'a>,
        pub(crate) message: Option<MessageStart<'a>>,
        pub(crate) index: u64,
        pub(crate) content_block: Option<AnswerBlock<'a>>,
        pub(crate) delta: Option<Delta<'a>>,
        pub(crate) usage: Option<Usage>,
        pub(crate) error: Option<RawJson<'a>>,
    }

    #[derive(Debug, Deserialize)]
    pub(crate) struct MessageStart<'a> {
        pub(crate) id: CowStr<'a>,
        pub(crate) model: CowStr<'a>,
        pub(crate) usage: Usage,
    }

    #[derive(Debug, Deserialize)]
    pub(crate) struct Delta<'a> {
        pub(crate) text: Option<CowStr<'a>>,
        pub(crate) partial_json: Option<CowStr<'a>>,
        pub(crate) stop_reason: Option<CowStr<'a>>,
    }
}
