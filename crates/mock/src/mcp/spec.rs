//! The configuration of the MCP server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use smart_default::SmartDefault;

use crate::check::{check_distribution, check_faults, check_positive, check_share};
use crate::distribution::Distribution;
use crate::duration::HumanDuration;
use crate::fault::FaultShare;

/// The MCP server at `/mcp`.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct McpSpec {
    /// Transport of answers: `auto` streams calls with progress, `json` none, `stream` all. A
    /// client that accepts only one form gets that form.
    pub answers: AnswerMode,
    /// Entries on one page of a list.
    #[default(50)]
    pub page: u32,
    /// The most open sessions; more get status 503. A session uses at most 150 bytes.
    #[default(100_000)]
    pub max_sessions: u32,
    /// Time without requests until a session expires.
    #[default(HumanDuration::from_millis(30 * 60 * 1_000))]
    pub session_timeout: HumanDuration,
    /// The tools by name. The default has `echo`, `slow` and `failing`.
    #[default(serde_saphyr::from_str(include_str!("tools.yaml")).unwrap_or_default())]
    pub tools: BTreeMap<String, ToolSpec>,
}

/// The transport of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerMode {
    /// Calls with progress are streamed.
    #[default]
    Auto,
    /// No answer is streamed.
    Json,
    /// Every answer is streamed.
    Stream,
}

impl AnswerMode {
    /// All variants, for the reference page.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 3] = [Self::Auto, Self::Json, Self::Stream];
}

/// A tool.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ToolSpec {
    /// The description for clients.
    pub description: String,
    /// The JSON Schema of its arguments. `required` and the types of properties are checked.
    #[cfg_attr(test, schemars(title = "JSON Schema"))]
    #[default(json!({"type": "object"}))]
    pub input: Value,
    /// Time from the complete request to the answer.
    pub latency: Distribution<HumanDuration>,
    /// Whether it declares a destructive effect (`annotations.destructiveHint`), for which careful
    /// clients ask first.
    pub destructive: bool,
    /// Whether the result is the argument `text`, or else all arguments as JSON.
    pub echo: bool,
    /// Bytes of the result's text, if it is not an echo.
    #[default(Distribution::Constant(64))]
    pub result_bytes: Distribution<u32>,
    /// Progress notifications before the answer, at equal intervals, if the client requests them.
    pub progress: u32,
    /// Share of the calls with an `isError` result, 0 to 1.
    pub tool_error_share: f64,
    /// Share of the calls that get a JSON-RPC error, 0 to 1.
    pub rpc_error_share: f64,
    /// The code of these errors.
    #[default(-32_603)]
    pub rpc_error_code: i32,
    /// Injected faults and their shares; `@n` is after progress notification `n`.
    pub faults: Vec<FaultShare>,
}

/// The most progress notifications of one call.
const MAX_PROGRESS: u32 = 10_000;

impl McpSpec {
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        check_positive(self.page, "mcp", "page", problems);
        check_positive(self.max_sessions, "mcp", "max_sessions", problems);
        for (name, tool) in &self.tools {
            tool.check(&format!("mcp.tools.{name}"), problems);
        }
    }
}

impl ToolSpec {
    fn check(&self, path: &str, problems: &mut Vec<String>) {
        if self.input.get("type") != Some(&Value::from("object")) {
            problems.push(format!("{path}.input: a schema with `type: object` is needed"));
        }
        if self.progress > MAX_PROGRESS {
            problems.push(format!("{path}.progress: at most {MAX_PROGRESS}"));
        }
        check_distribution(&self.latency, path, "latency", problems);
        check_distribution(&self.result_bytes, path, "result_bytes", problems);
        check_share(self.tool_error_share, path, "tool_error_share", problems);
        check_share(self.rpc_error_share, path, "rpc_error_share", problems);
        let errors = self.tool_error_share + self.rpc_error_share;
        check_share(errors, path, "tool_error_share plus rpc_error_share", problems);
        check_faults(&self.faults, path, problems);
    }
}
