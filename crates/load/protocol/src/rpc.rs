//! JSON-RPC 2.0 as used by MCP and A2A over HTTP: requests and responses.
//!
//! A [`Request`] is one message to a tool server or an agent, with the parts of HTTP that the
//! protocols define: path, method and headers. The [`Decoder`](crate::Decoder) reads the
//! [`Answer`], which is one JSON document or a stream of events.

pub mod a2a;
pub mod mcp;
mod write;

use std::sync::Arc;

use plimsoll_measure::Operation;

use crate::dialect::Dialect;

/// One message to a tool server or an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Path of the request. If empty, the path of the target's URL, or else the protocol's default.
    pub path: Arc<str>,
    /// Id of the message. Notifications, and requests other than JSON-RPC, do not send it.
    pub id: u64,
    /// Message.
    pub call: Call,
}

/// A message, by protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Message to a tool server.
    Mcp(mcp::Call),
    /// Message to an agent.
    A2a(a2a::Call),
}

/// The response that a request expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Operation of the request.
    pub operation: Operation,
    /// Id of the message.
    pub id: u64,
}

/// A ping with id 0, for decoders without an expectation.
impl Default for Expectation {
    fn default() -> Self {
        Self { operation: Operation::Ping, id: 0 }
    }
}

impl Expectation {
    /// Whether the response has a status only.
    pub(crate) const fn is_silent(self) -> bool {
        matches!(
            self.operation,
            Operation::Initialized | Operation::Cancelled | Operation::EndSession
        )
    }
}

impl Request {
    /// The wire format for the message.
    pub const fn dialect(&self) -> Dialect {
        match &self.call {
            Call::Mcp(_) => Dialect::Mcp,
            Call::A2a(_) => Dialect::A2a,
        }
    }

    /// The message's own path, if it has one.
    pub(crate) fn own_path(&self) -> Option<&str> {
        Some(&*self.path).filter(|path| !path.is_empty())
    }

    /// The operation that it requests.
    pub const fn operation(&self) -> Operation {
        match &self.call {
            Call::Mcp(call) => call.ask.operation(),
            Call::A2a(call) => call.ask.operation(),
        }
    }

    /// The response that it expects.
    pub const fn expectation(&self) -> Expectation {
        Expectation { operation: self.operation(), id: self.id }
    }

    /// Whether it requests a stream. MCP servers decide that themselves.
    pub const fn streams(&self) -> bool {
        matches!(self.operation(), Operation::SendStreamingMessage)
    }

    /// HTTP method.
    pub const fn method(&self) -> &'static str {
        match self.operation() {
            Operation::EndSession => "DELETE",
            Operation::AgentCard => "GET",
            _ => "POST",
        }
    }

    /// Headers of this request only, with lowercase names.
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

/// Content of a response that is counted, or needed for the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Code of the JSON-RPC error.
    pub code: Option<i64>,
    /// Whether a tool reports an error, or a task ended as failed or rejected.
    pub tool_error: bool,
    /// Notifications of the server before its response.
    pub notifications: u32,
    /// MCP: version that the server chose for the session.
    pub version: Option<String>,
    /// MCP: start of the next page of a list; `None` on the last page.
    pub cursor: Option<String>,
    /// A2A: the task.
    pub task: Option<String>,
    /// A2A: the context of the conversation.
    pub context: Option<String>,
    /// A2A: last state of the task.
    pub state: Option<a2a::TaskState>,
}
