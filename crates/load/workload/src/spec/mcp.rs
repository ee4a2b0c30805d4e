//! Sessions of a scenario with a tool server.

use plimsoll_measure::Nanos;
use plimsoll_protocol::rpc::mcp::Revision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The sessions of the `mcp` protocol. A conversation is a session: the handshake, a step for each
/// of the scenario's `turns`, and the deletion. Revision 2026-07-28 has only the steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpSpec {
    /// Revision of MCP. `2026-07-28` has no sessions.
    #[serde(default)]
    pub revision: Revision,
    /// Path of the tool server. Omitted: the path of the target's URL, or else `/mcp`.
    #[serde(default)]
    pub path: String,
    /// End each session by `DELETE` after its last step.
    #[serde(default = "yes")]
    pub delete: bool,
    /// Tools to call if `steps` are omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Possible steps of a session, chosen by weight. Omitted: Plimsoll asks the server for its
    /// tools before the load, and calls each with arguments that match its schema, except tools
    /// marked as destructive.
    #[serde(default)]
    pub steps: Vec<McpStep>,
}

/// A step of a session.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpStep {
    /// The method.
    pub method: McpMethod,
    /// Weight relative to the other steps.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub weight: f64,
    /// The tool, the prompt, or the URI of the resource.
    pub name: Option<String>,
    /// Arguments of a tool or prompt.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// Length of a synthetic text, drawn for each call, that is added to the arguments of a tool.
    pub argument_bytes: Option<ByteRange>,
    /// Name of the argument with that text.
    #[serde(default = "text")]
    pub argument: String,
    /// Ask for progress notifications in tool calls.
    #[serde(default)]
    pub progress: bool,
    /// Cancel a tool call after this time, and notify the server.
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub cancel_after: Option<Nanos>,
}

/// An MCP method of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum McpMethod {
    /// The next page of tools.
    #[serde(rename = "tools/list")]
    ListTools,
    /// A tool call.
    #[serde(rename = "tools/call")]
    CallTool,
    /// The next page of resources.
    #[serde(rename = "resources/list")]
    ListResources,
    /// The next page of templates of resources.
    #[serde(rename = "resources/templates/list")]
    ListResourceTemplates,
    /// The content of a resource.
    #[serde(rename = "resources/read")]
    ReadResource,
    /// The next page of prompts.
    #[serde(rename = "prompts/list")]
    ListPrompts,
    /// A prompt.
    #[serde(rename = "prompts/get")]
    GetPrompt,
    /// A check of the connection, in revisions with sessions.
    #[serde(rename = "ping")]
    Ping,
    /// Versions and capabilities, in the revision without sessions.
    #[serde(rename = "server/discover")]
    Discover,
}

impl McpMethod {
    /// Whether the method needs the name of a tool, prompt or resource.
    pub const fn has_name(self) -> bool {
        matches!(self, Self::CallTool | Self::ReadResource | Self::GetPrompt)
    }
}

/// A length in bytes, drawn evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// Minimum.
    pub min: u32,
    /// Maximum, at least `min`.
    pub max: u32,
}

const fn yes() -> bool {
    true
}

const fn one() -> f64 {
    1.0
}

fn text() -> String {
    "text".to_owned()
}
