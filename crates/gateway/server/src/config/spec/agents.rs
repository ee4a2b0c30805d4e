//! Configuration keys of the layer of agents.

use serde::Deserialize;

use super::agent_directory::AgentDirectorySpec;
use super::approvals::ApprovalsSpec;
use super::chat::ChatSpec;
use super::sessions::SessionsSpec;

/// The layer of agents.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AgentsSpec {
    /// Sessions: `/v1/sessions`.
    pub sessions: SessionsSpec,
    /// Approvals by people: `/v1/hitl`.
    pub approvals: ApprovalsSpec,
    /// Agents behind the gateway (A2A): `/a2a` and `/v1/a2a`.
    pub agents: AgentDirectorySpec,
    /// The agent that the gateway itself runs: `/api/chat` and `/v1/runs`. Without it these routes
    /// are not there.
    pub chat: Option<ChatSpec>,
}
