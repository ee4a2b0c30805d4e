//! The canonical file of traffic: a header, then a request on each line.

use std::collections::BTreeMap;

use plimsoll_protocol::Dialect;
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
    /// Where the requests come from, such as the format and the names of the files.
    #[serde(default)]
    pub source: Map<String, Value>,
}

/// Every other line: one request. It names only ids of earlier lines.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["id"]))]
pub struct Request {
    /// Unique in the file.
    pub id: String,
    /// The unit that is started, repeated and counted as one; absent: this request alone.
    pub session: Option<String>,
    /// Start of the session since the file's zero, before which it may lie; on its first line only.
    pub session_at_ms: Option<f64>,
    /// Recorded send time since the start of the session.
    pub at_ms: Option<f64>,
    /// The request whose prompt and reply come before `messages`. Dialect, model, headers and
    /// `body` are inherited, member by member; `null` removes one.
    pub continues: Option<String>,
    /// Requests that must have ended; by default the one in `continues`.
    pub after: Option<Vec<After>>,
    /// Think or tool time after the request in `continues`.
    pub wait_ms: Option<f64>,
    /// The agent of the session that sends it.
    pub agent: Option<String>,
    /// Selects path and body.
    pub dialect: Option<Dialect>,
    /// The name that the client asked for.
    pub model: Option<String>,
    /// In the form of the dialect: `messages`, `input` or `contents` of the body.
    pub messages: Option<Vec<Value>>,
    /// All other members of the request body, as recorded.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
    /// The recorded reply, as messages of the dialect.
    pub reply: Option<Vec<Value>>,
    /// Recorded or expected tokens of the whole prompt.
    pub in_tokens: Option<u64>,
    /// Recorded or expected tokens of the reply.
    pub out_tokens: Option<u64>,
    /// Recorded tokens of the prompt that a prefix cache served.
    pub cached_tokens: Option<u64>,
    /// Prefix blocks, where the source has no text.
    pub blocks: Option<Blocks>,
    /// Headers without credentials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Method (dialect `http`).
    pub method: Option<String>,
    /// Path and query (dialect `http`).
    pub path: Option<String>,
    /// Body as text (dialect `http`).
    pub body_text: Option<String>,
    /// Body in base64 (dialect `http`).
    pub body_b64: Option<String>,
}

impl Request {
    /// The ids of earlier requests that it names.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        let after = self.after.iter().flatten().map(|after| &*after.id);
        self.continues.as_deref().into_iter().chain(after)
    }
}

/// A request that must have ended, and the time to wait after it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The request.
    pub id: String,
    /// Think or tool time.
    pub wait_ms: Option<f64>,
    /// Purpose of the wait.
    pub what: Option<String>,
}

impl After {
    /// Waits for the end of a request.
    pub(crate) fn end_of(id: &str) -> Self {
        Self { id: id.to_owned(), wait_ms: None, what: None }
    }
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
