//! JSON-RPC 2.0 as used by MCP and A2A over HTTP: requests and responses.
//!
//! A [`Request`] is one message to a tool server or an agent, with the parts of HTTP that the
//! protocols define: path, method and headers. The [`Decoder`](crate::Decoder) reads the
//! [`Answer`], which is one JSON document or a stream of events.

pub mod a2a;
pub mod mcp;

use std::sync::Arc;

use plimsoll_measure::Operation;

use crate::dialect::Dialect;
use crate::json_escape;

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

/// The parameters of a message under construction: members of a JSON object.
#[derive(Debug)]
struct Params<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Params<'_> {
    /// Appends a whole message; without an id it is a notification.
    fn message(
        out: &mut Vec<u8>,
        id: Option<u64>,
        method: &str,
        write: impl FnOnce(&mut Params<'_>),
    ) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        if let Some(id) = id {
            out.extend_from_slice(br#""id":"#);
            out.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(br#""method":"#);
        json_escape::push_string(out, method);
        out.extend_from_slice(br#","params":{"#);
        let mut params = Params { out, is_first: true };
        write(&mut params);
        params.out.extend_from_slice(b"}}");
    }

    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        json_escape::push_string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// Adds a text.
    fn text(&mut self, name: &str, text: &str) {
        json_escape::push_string(self.name(name), text);
    }

    /// Adds a text, if there is one.
    fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Adds encoded JSON.
    fn json(&mut self, name: &str, json: &str) {
        self.name(name).extend_from_slice(json.as_bytes());
    }

    /// Adds an integer.
    fn number(&mut self, name: &str, number: u64) {
        self.json(name, itoa::Buffer::new().format(number));
    }

    /// Adds a text made of pieces.
    fn pieces<'t>(&mut self, name: &str, pieces: impl Iterator<Item = &'t str>) {
        let out = self.name(name);
        out.push(b'"');
        pieces.for_each(|piece| json_escape::push_escaped(out, piece));
        out.push(b'"');
    }

    /// Adds an object.
    fn object(&mut self, name: &str, write: impl FnOnce(&mut Params<'_>)) {
        let out = self.name(name);
        out.push(b'{');
        let mut members = Params { out, is_first: true };
        write(&mut members);
        members.out.push(b'}');
    }

    /// Adds an array with one object.
    fn one(&mut self, name: &str, write: impl FnOnce(&mut Params<'_>)) {
        let out = self.name(name);
        out.extend_from_slice(b"[{");
        let mut members = Params { out, is_first: true };
        write(&mut members);
        members.out.extend_from_slice(b"}]");
    }
}
