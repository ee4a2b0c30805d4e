//! Configuration keys of agents behind the gateway.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::units::HumanDuration;

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

impl AgentSpec {
    /// An agent with the defaults.
    pub(crate) fn at(url: String) -> Self {
        Self {
            url: Some(url),
            upstream: None,
            path: a2a(),
            card: well_known(),
            timeout: minute(),
            idle_timeout: minute(),
        }
    }
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
