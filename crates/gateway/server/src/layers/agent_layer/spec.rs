//! Configuration keys of the layer of agents.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::units::{ByteSize, HumanDuration};

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

/// Sessions.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SessionsSpec {
    /// Life time of a session that names none.
    pub ttl: HumanDuration,
    /// Longest life time that a session may name.
    pub max_ttl: HumanDuration,
    /// Most live sessions of all tenants; further ones are refused with 503. A tenant, without one
    /// a consumer, leaves an eighth to all others. In memory one costs less than 2 KiB beside its
    /// metadata.
    pub max: usize,
    /// Most bytes of a session's metadata.
    pub metadata_bytes: ByteSize,
    /// Most tool calls of a session, and of a chat.
    pub calls: u32,
}

impl Default for SessionsSpec {
    fn default() -> Self {
        Self {
            ttl: HumanDuration::secs(1_800),
            max_ttl: HumanDuration::secs(86_400),
            max: 100_000,
            metadata_bytes: ByteSize(1 << 10),
            calls: 20,
        }
    }
}

/// Approvals by people.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsSpec {
    /// Time that an approval waits for a decision, if it names none. Then it is expired.
    pub ttl: HumanDuration,
    /// Longest time that an approval may name.
    pub max_ttl: HumanDuration,
    /// Time that a decided approval can still be read.
    pub keep: HumanDuration,
    /// Most approvals of all tenants. The one that was decided first gives way to a new one; where
    /// all are pending, the new one is refused with 503.
    pub max: usize,
    /// Most bytes of an action and its details together, and of a reason.
    pub bytes: ByteSize,
}

impl Default for ApprovalsSpec {
    fn default() -> Self {
        Self {
            ttl: HumanDuration::secs(3_600),
            max_ttl: HumanDuration::secs(604_800),
            keep: HumanDuration::secs(3_600),
            max: 100_000,
            bytes: ByteSize(4 << 10),
        }
    }
}

/// Agents behind the gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AgentDirectorySpec {
    /// The agents, by name: up to 64 lower-case letters, digits, `-` and `_`.
    pub known: BTreeMap<String, AgentSpec>,
    /// The agents that each tenant may ask; `*` stands for every tenant and for requests without
    /// one, and among the agents for all. What is not listed is refused.
    pub allow: BTreeMap<String, Vec<String>>,
    /// The agent at `/a2a`; without it the only one that there is.
    pub default: Option<String>,
    /// Address by which clients reach the gateway, like `https://gateway.example`, for the cards of
    /// agents. Without it: the host that the client named.
    pub public_url: Option<String>,
}

/// An agent.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// Where it takes JSON-RPC: `http://HOST:PORT/PATH`.
    #[serde(default)]
    pub url: Option<String>,
    /// Name of an upstream where it is, instead of `url`.
    #[serde(default)]
    pub upstream: Option<String>,
    /// Path at that upstream.
    #[serde(default = "a2a")]
    pub path: String,
    /// Path of its card.
    #[serde(default = "well_known")]
    pub card: String,
    /// Time limit until an answer begins; that of an upstream is its own.
    #[serde(default = "minute")]
    pub timeout: HumanDuration,
    /// Longest pause within an answer; that of an upstream is its own.
    #[serde(default = "minute")]
    pub idle_timeout: HumanDuration,
}

fn a2a() -> String {
    "/a2a".to_owned()
}

fn well_known() -> String {
    "/.well-known/agent-card.json".to_owned()
}

const fn minute() -> HumanDuration {
    HumanDuration::secs(60)
}

/// The agent that the gateway itself runs.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ChatSpec {
    /// Name of the upstream with the model; without it the first one.
    pub upstream: Option<String>,
    /// The model.
    pub model: String,
    /// Most answers of the model until one without tool calls: 1 to 20.
    pub steps: u32,
    /// Most runs in progress at once; further ones are refused with 503.
    pub runs: usize,
    /// Most runs in progress of one tenant, without a tenant of one consumer or client address;
    /// further ones are refused with 429.
    pub owner_runs: usize,
    /// Time limit of a run.
    pub run_timeout: HumanDuration,
    /// Time that the result of a run can be read. In memory it may go earlier, when the 16 MiB for
    /// all results are taken.
    pub keep: HumanDuration,
}

impl Default for ChatSpec {
    fn default() -> Self {
        Self {
            upstream: None,
            model: "mock-fast".to_owned(),
            steps: 20,
            runs: 1_000,
            owner_runs: 100,
            run_timeout: HumanDuration::secs(600),
            keep: HumanDuration::secs(3_600),
        }
    }
}
