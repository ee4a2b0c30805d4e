//! What a scenario does with a tool server.

use plimsoll_measure::Nanos;
use plimsoll_protocol::rpc::mcp::Revision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The sessions of the `mcp` protocol. A conversation is a session: the handshake, as many steps as
/// the scenario has `turns`, and the deletion. In revision 2026-07-28 it is the steps alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpSpec {
    /// Revision of MCP. `2026-07-28` has no sessions.
    #[serde(default)]
    pub revision: Revision,
    /// Path of the tool server. Left out: that of the target's URL, or else `/mcp`.
    #[serde(default)]
    pub path: String,
    /// Whether a session is ended by `DELETE` after its last step.
    #[serde(default = "yes")]
    pub delete: bool,
    /// The only tools that are called, where `steps` are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What a session may do; each of its steps is one of these, chosen by weight. Left out: the
    /// server is asked for its tools before the load, and each is called with arguments that fit
    /// its schema, but for those that say they destroy something.
    #[serde(default)]
    pub steps: Vec<McpStep>,
}

/// What one step of a session asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpStep {
    /// The method.
    pub method: McpMethod,
    /// How often it is chosen, relative to the weights of the other steps.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub weight: f64,
    /// The tool, the prompt, or the URI of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Arguments of a tool or prompt.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// Length of a synthetic text that is a further argument of a tool, drawn for each call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_bytes: Option<ByteRange>,
    /// Name of the argument with that text.
    #[serde(default = "text")]
    pub argument: String,
    /// Whether a call of a tool asks for notifications of progress.
    #[serde(default)]
    pub progress: bool,
    /// A call of a tool that takes longer is given up, and the server is told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub cancel_after: Option<Nanos>,
}

/// A method of MCP that a step can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum McpMethod {
    /// The next page of tools.
    #[serde(rename = "tools/list")]
    ListTools,
    /// A call of a tool.
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
    /// Is the server there? In revisions with sessions.
    #[serde(rename = "ping")]
    Ping,
    /// Versions and capabilities. In the revision without sessions.
    #[serde(rename = "server/discover")]
    Discover,
}

impl McpMethod {
    /// Whether it is about one tool, prompt or resource.
    pub const fn has_name(self) -> bool {
        matches!(self, Self::CallTool | Self::ReadResource | Self::GetPrompt)
    }
}

/// A length in bytes, drawn evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// The least.
    pub min: u32,
    /// The most; no less than `min`.
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
