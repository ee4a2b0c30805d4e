//! The validated agent of a scenario.

use std::sync::Arc;

use plimsoll_measure::{Nanos, ScenarioId, Seed, TaskPart};
use plimsoll_protocol::Dialect;
use plimsoll_protocol::rpc::mcp::Revision;

use crate::error::ScenarioFault;
use crate::spec::{AgentRole, AgentSpec, ApproveSpec, DurationSpec, ScenarioSpec, ToolProtocol};

/// The agent of a scenario.
#[derive(Debug)]
pub(crate) struct AgentRules {
    pub(crate) tools: ToolProtocol,
    /// The MCP revision, and whether the agent ends its sessions.
    pub(crate) revision: Revision,
    pub(crate) deletes: bool,
    pub(crate) tool_path: Arc<str>,
    pub(crate) max_steps: u16,
    pub(crate) approvals: Option<ApprovalRules>,
    /// The scenarios of its parts, in the order of [`TaskPart::ALL`].
    parts: [ScenarioId; TaskPart::COUNT],
}

/// The calls that need a human's approval, and how the human decides.
#[derive(Debug)]
pub(crate) struct ApprovalRules {
    pub(crate) path: String,
    tools: Vec<String>,
    share: f64,
    think: DurationSpec,
}

/// Maximum number of steps in a task. Even with the maximum number of calls and two requests for
/// each approval, 16 bits can number all requests of a task.
const MOST_STEPS: u16 = 100;

impl AgentRules {
    /// Validates the agent of the scenario at `index`, if it has one.
    ///
    /// # Errors
    /// All problems of the agent, with their keys.
    pub(crate) fn new(
        specs: &[ScenarioSpec],
        index: usize,
    ) -> Result<Option<Self>, Vec<(&'static str, ScenarioFault)>> {
        let Some(scenario) = specs.get(index) else { return Ok(None) };
        let Some(AgentRole::Agent(agent)) = &scenario.agent else { return Ok(None) };
        let mut faults = faults(scenario, agent);
        let own = u16::try_from(index).ok().map(ScenarioId);
        let tools =
            find_part(specs, |role| matches!(role, AgentRole::Tools { of, .. } if *of == index));
        let approvals =
            find_part(specs, |role| matches!(role, AgentRole::Approvals { of } if *of == index));
        let parts = match (own, tools, approvals) {
            (Some(own), Some(tools), Some(approvals)) => [own, tools, approvals],
            (Some(own), Some(tools), None) if agent.approve.is_none() => [own, tools, tools],
            _ => {
                faults.push(("agent", ScenarioFault::Agent(NO_PARTS)));
                [ScenarioId::default(); TaskPart::COUNT]
            }
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let calls = specs.get(parts[TaskPart::Tools as usize].index());
        let calls = calls.and_then(|calls: &ScenarioSpec| calls.mcp.as_ref());
        Ok(Some(Self {
            tools: agent.tools,
            revision: calls.map_or(Revision::V20260728, |calls| calls.revision),
            deletes: calls.is_some_and(|calls| calls.delete),
            tool_path: agent.tool_path().into(),
            max_steps: agent.max_steps,
            approvals: agent.approve.as_ref().map(ApprovalRules::from),
            parts,
        }))
    }

    /// The scenario that counts the requests of a part.
    pub(crate) const fn scenario_of(&self, part: TaskPart) -> ScenarioId {
        self.parts[part as usize]
    }
}

impl ApprovalRules {
    /// Whether the calls of a tool wait for approval.
    pub(crate) fn concerns(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == "*" || name == tool)
    }

    /// Whether the human approves, and the time to decide. Both depend only on the conversation's
    /// seed and the turn.
    pub(crate) fn decide(&self, conversation: Seed, turn: u16) -> (bool, Nanos) {
        let turn = u64::from(turn);
        let approves = conversation.rng("approval", turn).uniform() < self.share;
        (approves, self.think.sample(&mut conversation.rng("approval think", turn)))
    }
}

impl From<&ApproveSpec> for ApprovalRules {
    fn from(spec: &ApproveSpec) -> Self {
        Self {
            path: spec.path.trim_end_matches('/').to_owned(),
            tools: spec.tools.clone(),
            share: spec.share,
            think: spec.think(),
        }
    }
}

const NO_PARTS: &str = "the agent's parts are not among the scenarios: add them with `with_parts`";

fn find_part(specs: &[ScenarioSpec], is_part: impl Fn(&AgentRole) -> bool) -> Option<ScenarioId> {
    let found = specs.iter().position(|spec| spec.agent.as_ref().is_some_and(&is_part))?;
    u16::try_from(found).ok().map(ScenarioId)
}

/// Removes the query from a path, because reports show the path and the query may be a credential.
fn is_path(path: &str) -> bool {
    path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'?' && byte != b'#')
}

fn faults(scenario: &ScenarioSpec, agent: &AgentSpec) -> Vec<(&'static str, ScenarioFault)> {
    let chats = matches!(
        scenario.protocol,
        Dialect::OpenaiChat | Dialect::OpenaiResponses | Dialect::AnthropicMessages
    );
    let steps = (1..=MOST_STEPS).contains(&agent.max_steps);
    let approve = agent.approve.as_ref();
    let wrong = |is_wrong: &dyn Fn(&ApproveSpec) -> bool| approve.is_some_and(is_wrong);
    let found = [
        (
            !chats,
            "agent",
            "an agent needs a chat protocol: write `protocol: openai-chat`, `openai-responses` or `anthropic-messages`",
        ),
        (
            scenario.turns != 1,
            "turns",
            "the responses determine the number of turns of an agent: leave it out",
        ),
        (
            scenario.think_time.is_some(),
            "think_time",
            "the steps of an agent have no think time: leave it out, or write `agent.approve.think_time`",
        ),
        (!steps, "agent.max_steps", "the number of steps is out of range: write 1 to 100"),
        (
            !is_path(agent.tool_path()),
            "agent.tool_path",
            "this is not a path without a query: write one like `/v1/mcp/tools/call`",
        ),
        (
            wrong(&|spec| spec.tools.is_empty()),
            "agent.approve.tools",
            "the list is empty: name a tool, or write `\"*\"` for all",
        ),
        (
            wrong(&|spec| !(0.0..=1.0).contains(&spec.share)),
            "agent.approve.share",
            "the share is out of range: write a number from 0 to 1",
        ),
        (
            wrong(&|spec| !spec.think().is_valid()),
            "agent.approve.think_time",
            "the durations are in the wrong order or zero: write `min` <= `max`, and 0 < `median` <= `p95`",
        ),
        (
            wrong(&|spec| !is_path(&spec.path)),
            "agent.approve.path",
            "this is not a path without a query: write one like `/v1/hitl`",
        ),
    ];
    let found = found.into_iter().filter(|(is_wrong, ..)| *is_wrong);
    found.map(|(_, field, text)| (field, ScenarioFault::Agent(text))).collect()
}
