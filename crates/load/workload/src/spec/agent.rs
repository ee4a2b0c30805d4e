//! Agents: scenarios in which responses decide the next request.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_protocol::Dialect;
use plimsoll_protocol::rpc::mcp::Revision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::trace::Trace;

use super::{Content, DurationSpec, HttpSpec, McpSpec, PolicyDecisionSpec, ScenarioSpec};

/// How an agent calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolProtocol {
    /// `POST` with `{"name", "arguments"}`; the response contains the result in `result`.
    #[default]
    Rest,
    /// `tools/call` of the Model Context Protocol: JSON-RPC over Streamable HTTP. In revisions with
    /// sessions, a task opens one before its first call.
    Mcp,
}

/// An agent: the model's responses decide the next request. Plimsoll calls each requested tool at
/// the target, one after another, and adds its result to the next request to the model. The task
/// ends with the first response without tool calls.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSpec {
    /// Protocol of tool calls.
    pub tools: ToolProtocol,
    /// Revision of MCP. Omitted: Plimsoll asks the server before the load, and uses calls without a
    /// session (2026-07-28) if it does not respond. It also asks for the tools to offer to the
    /// model if `parameters.tools` is empty.
    pub revision: Option<Revision>,
    /// Path of tool calls at the target. Omitted: `/v1/mcp/tools/call`, or `/mcp` for `tools: mcp`.
    pub tool_path: Option<String>,
    /// Maximum number of model responses in a task. If the last one calls tools, the task ends
    /// without the calls.
    #[schemars(range(min = 1, max = 100))]
    #[default = 20]
    pub max_steps: u16,
    /// Tool calls that require a human's approval.
    pub approve: Option<ApproveSpec>,
}

/// Tool calls that require a human's approval: a `POST` asks for the approval, the human thinks,
/// and another `POST` to `PATH/ID/approve` or `PATH/ID/reject` decides. For a rejected call, the
/// model receives the rejection as the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveSpec {
    /// The tools, by name; `"*"` means all tools.
    pub tools: Vec<String>,
    /// Share of approved calls, 0 to 1.
    #[serde(default = "share")]
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// Think time before the decision: a duration, or a distribution of durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_time: Option<DurationSpec>,
    /// Path of approvals at the target.
    #[serde(default = "path")]
    pub path: String,
}

const fn share() -> f64 {
    1.0
}

fn path() -> String {
    "/v1/hitl".to_owned()
}

impl AgentSpec {
    /// The path of tool calls.
    pub fn tool_path(&self) -> &str {
        self.tool_path.as_deref().unwrap_or(match self.tools {
            ToolProtocol::Rest => "/v1/mcp/tools/call",
            ToolProtocol::Mcp => "/mcp",
        })
    }
}

/// Role of a scenario in an agent.
///
/// An agent's requests are of different kinds, and their times must not be mixed. Its tool calls
/// and approvals are therefore separate scenarios, each with its encoder, results and limits. Their
/// weight is 0, because conversations belong to the agent. The same applies to the protocols of
/// recorded traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRole {
    /// An agent.
    Agent(AgentSpec),
    /// The tool calls of the agent at this position in the list of scenarios.
    Tools {
        /// The position.
        of: usize,
        /// Protocol of the calls.
        protocol: ToolProtocol,
    },
    /// The approvals of the agent at this position.
    Approvals {
        /// The position.
        of: usize,
    },
    /// The requests of another protocol in the recorded traffic of the scenario at this position.
    Recorded {
        /// The position.
        of: usize,
    },
}

impl AgentRole {
    /// Whether its requests belong to the conversations of another scenario.
    pub const fn is_part(&self) -> bool {
        !matches!(self, Self::Agent(_))
    }
}

/// The names of an agent's parts: `NAME/tools` and `NAME/approvals`.
pub fn part_names(name: &str) -> [String; 2] {
    ["tools", "approvals"].map(|part| format!("{name}/{part}"))
}

/// The scenarios, followed by the parts of every agent, and by the other protocols of their
/// recorded traffic and of the trace: `NAME/PROTOCOL`.
pub fn with_parts(mut scenarios: Vec<ScenarioSpec>, trace: Option<&Trace>) -> Vec<ScenarioSpec> {
    let mut parts = Vec::new();
    for (of, scenario) in scenarios.iter().enumerate() {
        let own = scenario.content.recording().and_then(Result::ok);
        for trace in own.as_deref().into_iter().chain(trace) {
            let others = trace.dialects().into_iter().filter(|found| *found != scenario.protocol);
            parts.extend(others.map(|protocol| recorded(scenario, of, protocol)));
        }
        let Some(AgentRole::Agent(agent)) = &scenario.agent else { continue };
        let [tools, approvals] = part_names(&scenario.name);
        let role = AgentRole::Tools { of, protocol: agent.tools };
        let mut calls = part(scenario, tools, agent.tool_path(), role);
        if let (Some(mcp), Some(revision)) = (&mut calls.mcp, agent.revision) {
            mcp.revision = revision;
            mcp.delete = revision.has_sessions();
        }
        parts.push(calls);
        if let Some(approve) = &agent.approve {
            parts.push(part(scenario, approvals, &approve.path, AgentRole::Approvals { of }));
        }
    }
    scenarios.extend(parts);
    scenarios
}

/// A part of `agent` whose requests are `POST`s below `path`.
fn part(agent: &ScenarioSpec, name: String, path: &str, role: AgentRole) -> ScenarioSpec {
    let (protocol, http, mcp) = if role.calls_by_mcp() {
        (Dialect::Mcp, None, Some(calls_at(path)))
    } else {
        (Dialect::Http, Some(post_to(path)), None)
    };
    ScenarioSpec {
        name,
        weight: 0.0,
        protocol,
        turns: 1,
        stream: false,
        system: None,
        content: Content::Sized { approx_input_tokens: super::LengthSpec::Fixed(0) },
        max_tokens: None,
        output_tokens: None,
        think_time: None,
        prefix_pool: None,
        http,
        mcp,
        parameters: serde_json::Map::new(),
        expect: None,
        category: None,
        policy_decision: PolicyDecisionSpec::default(),
        agent: Some(role),
        ..agent.clone()
    }
}

/// The recorded requests of another protocol than the scenario's.
fn recorded(scenario: &ScenarioSpec, of: usize, protocol: Dialect) -> ScenarioSpec {
    let name = format!("{}/{}", scenario.name, protocol.name());
    let stream = scenario.stream && protocol.terminator().is_some();
    let content = Content::Sized { approx_input_tokens: super::LengthSpec::Fixed(1) };
    let part = part(scenario, name, "", AgentRole::Recorded { of });
    let http = part.http.clone().filter(|_| protocol == Dialect::Http);
    ScenarioSpec { protocol, stream, content, http, ..part }
}

/// Requests to a tool server without a session. They need no steps, because the model chooses them.
fn calls_at(path: &str) -> McpSpec {
    let revision = Revision::V20260728;
    let (tools, steps) = (Vec::new(), Vec::new());
    McpSpec { revision, path: path.to_owned(), delete: false, tools, steps }
}

/// Requests with a body and a response in JSON.
fn post_to(path: &str) -> HttpSpec {
    let headers = BTreeMap::from(
        ["accept", "content-type"]
            .map(|name: &str| (name.to_owned(), "application/json".to_owned())),
    );
    HttpSpec {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers,
        body: String::new(),
        body_file: None,
        expect: None,
    }
}

impl AgentRole {
    /// Whether its requests are tool calls by the Model Context Protocol.
    const fn calls_by_mcp(&self) -> bool {
        matches!(self, Self::Tools { protocol: ToolProtocol::Mcp, .. })
    }
}

impl ApproveSpec {
    /// The think time of a human, before it is drawn.
    pub(crate) const fn think(&self) -> DurationSpec {
        match self.think_time {
            Some(think) => think,
            None => DurationSpec::Fixed(Nanos::ZERO),
        }
    }
}
