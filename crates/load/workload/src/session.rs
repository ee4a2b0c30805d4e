//! Conversations with tool servers and agents. The steps and the responses decide the next message.

mod a2a;
mod discovery;
mod mcp;
mod schema_arguments;

use std::fmt::Debug;
use std::sync::Arc;

use plimsoll_measure::{Nanos, Outcome, Seed};
use plimsoll_protocol::rpc;

pub(crate) use a2a::A2aPlan;
use a2a::A2aSession;
pub use discovery::{DiscoveryAnswer, ToolDiscovery, offered_to_model};
pub(crate) use mcp::McpPlan;
use mcp::McpSession;

/// The outcome of a message to a tool server or an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// HTTP status; 0 for no response.
    pub status: u16,
    /// The session in the head of the response.
    pub session: Option<String>,
    /// The code of a JSON-RPC error, whatever the status.
    pub code: Option<i64>,
    /// The content of the response.
    pub answer: rpc::Answer,
}

impl RpcEnd {
    /// Whether the response is a success.
    pub(crate) fn is_completed(&self) -> bool {
        self.outcome == Outcome::Completed
    }
}

/// The plan that the conversations of a scenario share.
#[derive(Debug)]
pub(crate) enum SessionPlan {
    /// With a tool server.
    Mcp(Arc<McpPlan>),
    /// With an agent.
    A2a(Arc<A2aPlan>),
}

/// Sources of the texts in messages.
pub(crate) trait Texts {
    /// The user's text in a step.
    fn message(&self, step: u16) -> plimsoll_protocol::Text;
    /// A synthetic text of this size in bytes.
    fn sized(&self, bytes: u32) -> String;
    /// A unique id.
    fn message_id(&self) -> String;
}

/// The state of a conversation with a tool server or an agent.
pub(crate) trait Session: Debug + Send {
    /// The current message; `None` after the last one.
    fn request(&self, texts: &dyn Texts) -> Option<rpc::Request>;

    /// The time after which the current message is cancelled.
    fn cancel_after(&self) -> Option<Nanos> {
        None
    }

    /// Records the outcome of the current message. Returns whether the conversation continues.
    fn note(&mut self, end: RpcEnd) -> bool;

    /// Moves on to the next message.
    fn advance(&mut self);

    /// Whether the last message has been sent.
    fn is_over(&self) -> bool;

    /// Whether the user thinks before the current message. The user thinks before every step except
    /// the first, but not before further messages of a step or of the protocol.
    fn is_thinking(&self) -> bool;
}

impl SessionPlan {
    /// Starts a conversation with this number of steps.
    pub(crate) fn begin(&self, seed: Seed, steps: u16) -> Box<dyn Session> {
        match self {
            Self::Mcp(plan) => Box::new(McpSession::begin(plan, seed, steps)),
            Self::A2a(plan) => Box::new(A2aSession::begin(plan, seed, steps)),
        }
    }
}
