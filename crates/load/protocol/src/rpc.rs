//! JSON-RPC 2.0 as MCP and A2A use it over HTTP: what is asked, and what an answer says.
//!
//! A [`Request`] is one message to a tool server or an agent, with the parts of HTTP that the
//! protocols define: path, method and headers. The [`Decoder`](crate::Decoder) reads the
//! [`Answer`], one JSON document or a stream of events.

pub mod a2a;
pub mod mcp;
mod write;

use std::sync::Arc;

use plimsoll_measure::Operation;

use crate::dialect::Dialect;

/// One message to a tool server or an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Path; empty for the path of the target's URL, or else the protocol's own.
    pub path: Arc<str>,
    /// Id of the message. Notifications, and requests that are no JSON-RPC, do not send it.
    pub id: u64,
    /// The message.
    pub call: Call,
}

/// A message, by protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// To a tool server.
    Mcp(mcp::Call),
    /// To an agent.
    A2a(a2a::Call),
}

/// The answer that a request expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// What was asked.
    pub operation: Operation,
    /// The id of the message.
    pub id: u64,
}

/// A ping with id 0; for decoders that are told nothing.
impl Default for Expectation {
    fn default() -> Self {
        Self { operation: Operation::Ping, id: 0 }
    }
}

impl Expectation {
    /// Whether the answer says nothing but its status.
    pub(crate) const fn is_silent(self) -> bool {
        matches!(
            self.operation,
            Operation::Initialized | Operation::Cancelled | Operation::EndSession
        )
    }
}

impl Request {
    /// The wire format in which it can be sent.
    pub const fn dialect(&self) -> Dialect {
        match &self.call {
            Call::Mcp(_) => Dialect::Mcp,
            Call::A2a(_) => Dialect::A2a,
        }
    }

    /// Its own path, if it has one.
    pub(crate) fn own_path(&self) -> Option<&str> {
        Some(&*self.path).filter(|path| !path.is_empty())
    }

    /// What it asks for.
    pub const fn operation(&self) -> Operation {
        match &self.call {
            Call::Mcp(call) => call.ask.operation(),
            Call::A2a(call) => call.ask.operation(),
        }
    }

    /// The answer that it expects.
    pub const fn expectation(&self) -> Expectation {
        Expectation { operation: self.operation(), id: self.id }
    }

    /// Whether a stream is asked for. MCP servers decide that themselves.
    pub const fn streams(&self) -> bool {
        matches!(self.operation(), Operation::SendStreamingMessage)
    }

    /// The method of HTTP.
    pub const fn method(&self) -> &'static str {
        match self.operation() {
            Operation::EndSession => "DELETE",
            Operation::AgentCard => "GET",
            _ => "POST",
        }
    }

    /// Headers of this request only, names in lower case.
    pub fn headers(&self) -> Vec<(String, String)> {
        match &self.call {
            Call::Mcp(call) => call.headers(),
            Call::A2a(call) => call.headers(),
        }
    }

    /// Appends the body.
    pub fn write_body(&self, out: &mut Vec<u8>) {
        match &self.call {
            Call::Mcp(call) => call.write_body(self.id, out),
            Call::A2a(call) => call.write_body(self.id, out),
        }
    }
}

/// What an answer says that is counted, or that the next request needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The code of the JSON-RPC error.
    pub code: Option<i64>,
    /// Whether a tool says that it failed, or a task ended as failed or rejected.
    pub tool_error: bool,
    /// Messages of the server before its answer.
    pub notifications: u32,
    /// MCP: the version that the server chose for the session.
    pub version: Option<String>,
    /// MCP: where the next page of a list begins; `None` on the last page.
    pub cursor: Option<String>,
    /// A2A: the task.
    pub task: Option<String>,
    /// A2A: the context of the conversation.
    pub context: Option<String>,
    /// A2A: the last state of the task.
    pub state: Option<a2a::TaskState>,
}
