//! The canonical file of traffic: a header, then a request on each line.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Version of the file.
pub const VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the file.
    pub plimsoll_traffic: u32,
    /// Where the requests come from.
    pub source: Origin,
    /// Absolute time of the file's zero, where the source has one (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t0: Option<String>,
}

/// Where the requests come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name of the format.
    pub format: String,
    /// Names of the files, without folders.
    #[serde(default)]
    pub files: Vec<String>,
    /// Version of Plimsoll that wrote the file.
    #[serde(default)]
    pub tool: String,
}

/// The API that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Dialect {
    OpenaiChat,
    OpenaiResponses,
    OpenaiCompletions,
    OpenaiEmbeddings,
    AnthropicMessages,
    Gemini,
    Http,
}

/// Every other line: one request. It names only ids of earlier lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["id"]))]
pub struct Request {
    /// Unique in the file.
    pub id: String,
    /// The unit that is started, repeated and counted as one; absent: this request alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Start of the session since the file's zero, before which it may lie; on its first line only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_at_ms: Option<f64>,
    /// Recorded send time since the start of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<f64>,
    /// The request whose prompt and reply come before `messages`. Dialect, model, headers and
    /// `body` are inherited, member by member; `null` removes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// Requests that must have ended before; by default the one in `continues`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<After>>,
    /// Think or tool time after the last of `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<f64>,
    /// The agent of the session that sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Selects path and body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// The name that the client asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// In the form of the dialect: `messages`, `input` or `contents` of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Value>>,
    /// All other members of the request body, as recorded.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
    /// The recorded reply, as messages of the dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Vec<Value>>,
    /// Recorded or expected tokens of the whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_tokens: Option<u64>,
    /// Recorded or expected tokens of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_tokens: Option<u64>,
    /// Recorded tokens of the prompt that a prefix cache served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Prefix blocks, where the source has no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// Headers without credentials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Method (dialect `http`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path and query (dialect `http`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Body as text (dialect `http`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_text: Option<String>,
    /// Body in base64 (dialect `http`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_b64: Option<String>,
    /// The recorded result, for comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
}

impl Request {
    /// The ids of earlier requests that it names.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        let after = self.after.iter().flatten().map(After::id);
        self.continues.as_deref().into_iter().chain(after)
    }
}

impl After {
    /// The request.
    pub fn id(&self) -> &str {
        match self {
            Self::Id(id) | Self::Wait(Wait { id, .. }) => id,
        }
    }
}

/// A request that must have ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum After {
    /// By its id; the wait is `wait_ms` of the request.
    Id(String),
    /// With a wait of its own.
    Wait(Wait),
}

/// A request that must have ended, and the time to wait then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "a name of the file")]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The request.
    pub id: String,
    /// Think or tool time after it.
    #[serde(default)]
    pub wait_ms: f64,
    /// What the wait is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// Prefix blocks of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Tokens of a block.
    pub size: u64,
    /// Equal ids are equal blocks.
    pub ids: Vec<u64>,
}

/// The recorded result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Recorded {
    /// HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u64>,
    /// Response time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// Time to the first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<f64>,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Line {
    /// The first one.
    Header(Header),
    /// Every other one.
    Request(Box<Request>),
}

/// JSON Schema of the lines.
pub fn schema() -> Value {
    schemars::schema_for!(Line).to_value()
}
