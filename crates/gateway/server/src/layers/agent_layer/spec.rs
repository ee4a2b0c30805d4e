//! Configuration keys of the agent layer.

use std::collections::BTreeMap;

use serde::Deserialize;
use smart_default::SmartDefault;

use crate::config::units::{ByteSize, HumanDuration};

/// The agent layer.
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
    /// The gateway's own agent: `/api/chat` and `/v1/runs`. Without it these routes do not exist.
    pub chat: Option<ChatSpec>,
}

/// Sessions.
#[derive(Clone, Copy, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SessionsSpec {
    /// Default lifetime of a session.
    #[default(HumanDuration::secs(1_800))]
    pub ttl: HumanDuration,
    /// Longest lifetime that a client may request.
    #[default(HumanDuration::secs(86_400))]
    pub max_ttl: HumanDuration,
    /// Most live sessions of all tenants; more are refused with 503. One tenant, or consumer
    /// without a tenant, may use at most seven eighths. In memory a session needs less than 2 KiB
    /// beside its metadata.
    #[default(100_000)]
    pub max: usize,
    /// Most bytes of a session's metadata.
    #[default(ByteSize(1 << 10))]
    pub metadata_bytes: ByteSize,
    /// Most tool calls of a session, and of a chat.
    #[default(20)]
    pub calls: u32,
}

/// Approvals by people.
#[derive(Clone, Copy, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsSpec {
    /// Default time until an approval expires without a decision.
    #[default(HumanDuration::secs(3_600))]
    pub ttl: HumanDuration,
    /// Longest time that a client may request.
    #[default(HumanDuration::secs(604_800))]
    pub max_ttl: HumanDuration,
    /// Time that a decided approval can still be read.
    #[default(HumanDuration::secs(3_600))]
    pub keep: HumanDuration,
    /// Most approvals of all tenants. A new one replaces the one decided first; if all are pending,
    /// it is refused with 503.
    #[default(100_000)]
    pub max: usize,
    /// Most bytes of an action with its details, and of a reason.
    #[default(ByteSize(4 << 10))]
    pub bytes: ByteSize,
}

/// Agents behind the gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AgentDirectorySpec {
    /// The agents, by name: up to 64 lower-case letters, digits, `-` and `_`.
    pub known: BTreeMap<String, AgentSpec>,
    /// The agents that each tenant may use; `*` matches every tenant and requests without one, and
    /// all agents. Agents that are not listed are refused.
    pub allow: BTreeMap<String, Vec<String>>,
    /// The agent at `/a2a`; by default the only one.
    pub default: Option<String>,
    /// Address by which clients reach the gateway, such as `https://gateway.example`, for the cards
    /// of agents. Default: the requested host.
    pub public_url: Option<String>,
}

/// An agent.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// Its JSON-RPC endpoint: `http://HOST:PORT/PATH`.
    pub url: Option<String>,
    /// Name of its upstream, instead of `url`.
    pub upstream: Option<String>,
    /// Path at that upstream.
    #[serde(default = "a2a")]
    pub path: String,
    /// Path of its card.
    #[serde(default = "well_known")]
    pub card: String,
    /// Time limit until an answer begins, for an agent with a `url`.
    #[serde(default = "HumanDuration::default_secs::<60>")]
    pub timeout: HumanDuration,
    /// Longest pause within an answer, for an agent with a `url`.
    #[serde(default = "HumanDuration::default_secs::<60>")]
    pub idle_timeout: HumanDuration,
}

fn a2a() -> String {
    "/a2a".to_owned()
}

fn well_known() -> String {
    "/.well-known/agent-card.json".to_owned()
}

/// The gateway's own agent.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ChatSpec {
    /// Name of the model's upstream; by default the first.
    pub upstream: Option<String>,
    /// The model.
    #[default("mock-fast".to_owned())]
    pub model: String,
    /// Most answers of the model per chat: 1 to 20.
    #[default(20)]
    pub steps: u32,
    /// Most runs in progress; more are refused with 503.
    #[default(1_000)]
    pub runs: usize,
    /// Most runs in progress of one tenant, or of one consumer or client address without a tenant;
    /// more are refused with 429.
    #[default(100)]
    pub owner_runs: usize,
    /// Time limit of a run.
    #[default(HumanDuration::secs(600))]
    pub run_timeout: HumanDuration,
    /// Time that the result of a run can be read. In memory it may be removed earlier, if the 16
    /// MiB for all results are used.
    #[default(HumanDuration::secs(3_600))]
    pub keep: HumanDuration,
}
