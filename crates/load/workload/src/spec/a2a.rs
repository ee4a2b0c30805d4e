//! Conversations of a scenario with an agent.

use plimsoll_protocol::rpc::a2a::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The conversations of the `a2a` protocol: as many steps as the scenario has `turns`. The messages
/// are the scenario's `content`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct A2aSpec {
    /// Version of A2A.
    #[serde(default)]
    pub version: Version,
    /// Path of the agent. Omitted: the path of the target's URL, or else `/a2a`.
    #[serde(default)]
    pub path: String,
    /// Path of the agent's card.
    #[serde(default = "card_path")]
    pub card_path: String,
    /// Possible steps of a conversation, chosen by weight.
    pub steps: Vec<A2aStep>,
}

/// A step of a conversation with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct A2aStep {
    /// Action.
    pub action: A2aAction,
    /// Weight relative to the other steps.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub weight: f64,
}

/// Action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum A2aAction {
    /// Sends a message and waits until the task is over.
    Send,
    /// Sends a message and reads a stream of responses.
    Stream,
    /// Sends a message that returns as soon as the task exists.
    Submit,
    /// Asks for the state of the last task. Without a task, it sends a message first, like
    /// `submit`.
    Get,
    /// Sends a message like `submit`, and cancels its task.
    Cancel,
    /// Gets the agent's card.
    Card,
}

const fn one() -> f64 {
    1.0
}

fn card_path() -> String {
    "/.well-known/agent-card.json".to_owned()
}
