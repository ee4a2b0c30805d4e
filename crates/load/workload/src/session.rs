//! Conversations with tool servers and agents: which message comes next follows from the scenario's
//! steps and from the answers.

mod a2a;
mod discovery;
mod mcp;
mod schema_arguments;

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
    Mcp(McpPlan),
    /// With an agent.
    A2a(A2aPlan),
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

/// The state of a conversation with a tool server or an agent.
#[derive(Debug)]
pub(crate) enum Session {
    Mcp(McpSession),
    A2a(A2aSession),
}

impl Session {
    /// The beginning of a conversation of so many steps.
    pub(crate) fn begin(plan: &SessionPlan, seed: Seed, steps: u16) -> Self {
        match plan {
            SessionPlan::Mcp(plan) => Self::Mcp(McpSession::begin(plan, seed, steps)),
            SessionPlan::A2a(plan) => Self::A2a(A2aSession::begin(plan, seed, steps)),
        }
    }

    /// The current message; `None` after the last one.
    pub(crate) fn request(&self, plan: &SessionPlan, texts: &impl Texts) -> Option<rpc::Request> {
        match (self, plan) {
            (Self::Mcp(session), SessionPlan::Mcp(plan)) => session.request(plan, texts),
            (Self::A2a(session), SessionPlan::A2a(plan)) => session.request(plan, texts),
            _ => None,
        }
    }

    /// After what time the current message is given up.
    pub(crate) fn cancel_after(&self, plan: &SessionPlan) -> Option<Nanos> {
        match (self, plan) {
            (Self::Mcp(session), SessionPlan::Mcp(plan)) => session.cancel_after(plan),
            _ => None,
        }
    }

    /// Takes note of how the current message ended. Whether the conversation goes on.
    pub(crate) fn note(&mut self, plan: &SessionPlan, end: RpcEnd) -> bool {
        match (self, plan) {
            (Self::Mcp(session), SessionPlan::Mcp(plan)) => session.note(plan, end),
            (Self::A2a(session), SessionPlan::A2a(_)) => session.note(end),
            _ => false,
        }
    }

    /// Moves on to the next message.
    pub(crate) fn advance(&mut self, plan: &SessionPlan) {
        match (self, plan) {
            (Self::Mcp(session), SessionPlan::Mcp(plan)) => session.advance(plan),
            (Self::A2a(session), SessionPlan::A2a(plan)) => session.advance(plan),
            _ => {}
        }
    }

    /// Whether the last message has been sent.
    pub(crate) const fn is_over(&self) -> bool {
        match self {
            Self::Mcp(session) => session.is_over(),
            Self::A2a(session) => session.is_over(),
        }
    }

    /// Whether the user thinks before the current message: before every step but the first, and
    /// not before what belongs to a step or to the protocol.
    pub(crate) const fn is_thinking(&self) -> bool {
        match self {
            Self::Mcp(session) => session.is_thinking(),
            Self::A2a(session) => session.is_thinking(),
        }
    }
}
