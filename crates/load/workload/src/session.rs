//! Conversations with tool servers and agents: which message comes next follows from the scenario's
//! steps and from the answers.

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

/// How a message to a tool server or an agent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// HTTP status; 0 for no response.
    pub status: u16,
    /// The session that the response's head names.
    pub session: Option<String>,
    /// The code of a JSON-RPC error, whatever the status.
    pub code: Option<i64>,
    /// What the answer says.
    pub answer: rpc::Answer,
}

impl RpcEnd {
    /// Whether the answer is a success.
    pub(crate) fn is_completed(&self) -> bool {
        self.outcome == Outcome::Completed
    }
}

/// What the conversations of a scenario share.
#[derive(Debug)]
pub(crate) enum SessionPlan {
    /// With a tool server.
    Mcp(Arc<McpPlan>),
    /// With an agent.
    A2a(Arc<A2aPlan>),
}

/// The texts of a message, which the conversation makes.
pub(crate) trait Texts {
    /// The user's text in a step.
    fn message(&self, step: u16) -> plimsoll_protocol::Text;
    /// A synthetic text of so many bytes.
    fn sized(&self, bytes: u32) -> String;
    /// An id that no other message has.
    fn message_id(&self) -> String;
}

/// A conversation with a tool server or an agent, so far.
pub(crate) trait Session: Debug + Send {
    /// The current message; `None` after the last one.
    fn request(&self, texts: &dyn Texts) -> Option<rpc::Request>;

    /// After what time the current message is given up.
    fn cancel_after(&self) -> Option<Nanos> {
        None
    }

    /// Takes note of how the current message ended. Whether the conversation goes on.
    fn note(&mut self, end: RpcEnd) -> bool;

    /// Moves on to the next message.
    fn advance(&mut self);

    /// Whether the last message has been sent.
    fn is_over(&self) -> bool;

    /// Whether the user thinks before the current message: before every step but the first, and
    /// not before what belongs to a step or to the protocol.
    fn is_thinking(&self) -> bool;
}

impl SessionPlan {
    /// The beginning of a conversation of so many steps.
    pub(crate) fn begin(&self, seed: Seed, steps: u16) -> Box<dyn Session> {
        match self {
            Self::Mcp(plan) => Box::new(McpSession::begin(plan, seed, steps)),
            Self::A2a(plan) => Box::new(A2aSession::begin(plan, seed, steps)),
        }
    }
}
