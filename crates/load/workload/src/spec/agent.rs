//! Agents: scenarios whose answers decide how they go on.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_protocol::Dialect;
use plimsoll_protocol::rpc::mcp::Revision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Content, DurationSpec, HttpSpec, McpSpec, PolicyDecisionSpec, ScenarioSpec};

/// How an agent calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolProtocol {
    /// `POST` with `{"name", "arguments"}`; the answer has the result in `result`.
    #[default]
    Rest,
    /// `tools/call` of the Model Context Protocol: JSON-RPC over Streamable HTTP. In revisions with
    /// sessions, a task opens one before its first call.
    Mcp,
}

/// An agent: the model's answers decide how a conversation goes on. Each tool that an answer calls
/// is called at the target, one after the other, and its result becomes part of the next request to
/// the model. That goes on until an answer calls no tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// How tools are called.
    #[serde(default)]
    pub tools: ToolProtocol,
    /// Revision of MCP. Left out: the server is asked before the load; one that does not answer
    /// gets calls without a session, as 2026-07-28 has them. It is also asked for the tools that
    /// the model is offered, where `parameters.tools` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Path of tool calls at the target. Left out: `/v1/mcp/tools/call`, or `/mcp` for
    /// `tools: mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_path: Option<String>,
    /// Most answers of the model in one task. If the last of them calls tools, these are not
    /// called, and the task ends at the bound.
    #[serde(default = "max_steps")]
    #[schemars(range(min = 1, max = 100))]
    pub max_steps: u16,
    /// Tool calls that a human approves or rejects first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<ApproveSpec>,
}

/// Tool calls that a human approves or rejects first: a `POST` asks for the approval, the human
/// thinks, and another `POST` to `PATH/ID/approve` or `PATH/ID/reject` decides. Of a rejected call
/// the model gets the refusal as its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveSpec {
    /// The tools, by name; `"*"` stands for all.
    pub tools: Vec<String>,
    /// The share of calls that are approved, 0 to 1.
    #[serde(default = "share")]
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// How long the human thinks before the decision: a duration, or a distribution of durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_time: Option<DurationSpec>,
    /// Path of approvals at the target.
    #[serde(default = "path")]
    pub path: String,
}

const fn max_steps() -> u16 {
    20
}

const fn share() -> f64 {
    1.0
}

fn path() -> String {
    "/v1/hitl".to_owned()
}

impl Default for AgentSpec {
    fn default() -> Self {
        Self {
            tools: ToolProtocol::Rest,
            revision: None,
            tool_path: None,
            max_steps: max_steps(),
            approve: None,
        }
    }
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

/// What a scenario has to do with agents.
///
/// An agent's requests are of different kinds, and their times must never be mixed. So its tool
/// calls and approvals are scenarios of their own, each with its encoder, its row of results and
/// its bounds. No conversation belongs to them: their weight is 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRole {
    /// It is an agent.
    Agent(AgentSpec),
    /// The tool calls of the agent at this position in the list of scenarios.
    Tools {
        /// The position.
        of: usize,
        /// How they are called.
        protocol: ToolProtocol,
    },
    /// The approvals of the agent at this position.
    Approvals {
        /// The position.
        of: usize,
    },
}

impl AgentRole {
    /// Whether its requests belong to the conversations of another scenario.
    pub const fn is_part(&self) -> bool {
        matches!(self, Self::Tools { .. } | Self::Approvals { .. })
    }
}

/// The names of an agent's parts: `NAME/tools` and `NAME/approvals`.
pub fn part_names(name: &str) -> [String; 2] {
    ["tools", "approvals"].map(|part| format!("{name}/{part}"))
}

/// The scenarios, and behind them the parts of every agent among them.
pub fn with_parts(mut scenarios: Vec<ScenarioSpec>) -> Vec<ScenarioSpec> {
    let mut parts = Vec::new();
    for (of, scenario) in scenarios.iter().enumerate() {
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

/// Requests to a tool server without a session. The model chooses them, so there are no steps.
fn calls_at(path: &str) -> McpSpec {
    let revision = Revision::V20260728;
    let (tools, steps) = (Vec::new(), Vec::new());
    McpSpec { revision, path: path.to_owned(), delete: false, tools, steps }
}

/// Requests with a body and an answer in JSON.
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
    /// Whether its requests are calls of tools by the Model Context Protocol.
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
