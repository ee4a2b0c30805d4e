//! The records of the ground-truth log. Their fields are the keys of the log file.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// The response was written to its last byte.
    Completed,
    /// The mock aborted it on purpose: cut, reset, hang.
    Aborted,
    /// The client disconnected first.
    ClientGone,
    /// The mock was shut down.
    ShutDown,
}

impl RequestEnd {
    /// Every variant, in the order of the counters.
    pub(crate) const ALL: [Self; 4] =
        [Self::Completed, Self::Aborted, Self::ClientGone, Self::ShutDown];
}

/// A body chunk, written at once. Times are nanoseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChunkRecord {
    /// Its planned time.
    pub due: u64,
    /// When it was passed to the connection.
    pub handed: u64,
    /// When the `write` of its last byte returned; 0 if it was not written.
    pub written: u64,
    /// Body bytes, without HTTP's chunk framing. For a WebSocket including frame headers.
    pub bytes: u64,
    /// Output tokens in it.
    pub tokens: u32,
}

/// A turn of a model with a tool loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolTurnRecord {
    /// Rounds of tool results since the last message of the user.
    pub round: u32,
    /// Rounds before the text.
    pub steps: u32,
    /// Tool calls in the answer; 0 for text.
    pub calls: u32,
}

/// The outcome of a JSON-RPC message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RpcOutcome {
    /// It was answered with a result.
    Result,
    /// It was answered with an `isError` result.
    ToolError,
    /// It was answered with a JSON-RPC error, or refused with one.
    #[default]
    Error,
    /// The notification was accepted.
    Accepted,
    /// The client cancelled it, its session or its task before it was answered.
    Cancelled,
    /// The session was ended.
    SessionEnded,
}

impl RpcOutcome {
    /// All variants, for the reference page.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] = [
        Self::Result,
        Self::ToolError,
        Self::Error,
        Self::Accepted,
        Self::Cancelled,
        Self::SessionEnded,
    ];
}

/// The JSON-RPC side of a request to the MCP server or to an A2A agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RpcRecord {
    /// The protocol version, if known.
    pub version: Option<String>,
    /// The session of the request, or opened by it; the context in A2A.
    pub session: Option<String>,
    /// The method.
    pub method: Option<String>,
    /// The message's id as JSON; none for notifications.
    pub id: Option<String>,
    /// The requested tool, resource or prompt.
    pub name: Option<String>,
    /// Bytes of the request's body.
    pub request_bytes: u64,
    /// Whether the answer is a stream.
    pub streamed: bool,
    /// Planned progress notifications; pieces of a result in A2A.
    pub progress: u32,
    /// The outcome. For an aborted response (see `end`) the planned one.
    pub outcome: RpcOutcome,
    /// The code of the JSON-RPC error.
    pub code: Option<i64>,
    /// A2A: the agent.
    pub agent: Option<String>,
    /// A2A: the task named by the message, or opened for it.
    pub task: Option<String>,
    /// A2A: the last reported state of the task, such as `input-required`.
    pub state: Option<String>,
    /// A2A: the header `x-agent-path`.
    pub path: Option<String>,
}

impl RpcRecord {
    /// The client cancelled the request, or canceled its task.
    pub(crate) fn cancelled(&mut self) {
        self.outcome = RpcOutcome::Cancelled;
        if let Some(state) = &mut self.state {
            "canceled".clone_into(state);
        }
    }
}

/// The subject of a WebSocket record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebSocketEvent {
    /// The handshake: the request that opens the connection.
    #[default]
    Handshake,
    /// A message of the client and its answer.
    Turn,
    /// The end of the connection, which counts as no request.
    End,
}

impl WebSocketEvent {
    /// All variants, for the reference page.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 3] = [Self::Handshake, Self::Turn, Self::End];
}

/// A WebSocket's side of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WebSocketRecord {
    /// The subject of the record.
    pub event: WebSocketEvent,
    /// For a turn: its position on the connection, from 0. For the end: the number of turns.
    pub turn: u32,
    /// For a turn: bytes of the client's message.
    pub message_bytes: u64,
    /// For the end: the code of the first close frame, if it had one.
    pub code: Option<u16>,
    /// For the end: whether the client closed first, with or without a close frame.
    pub by_client: bool,
}

/// The ground truth of one request. Times are nanoseconds since 1970 UTC: the monotonic clock plus
/// one offset that was taken at the start, so that differences are exact durations. Hashes are
/// FNV-1a, 64 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogRecord {
    /// The request's number, from 0, in the order in which heads were received.
    pub sequence: u64,
    /// Its `x-request-id`.
    pub request_id: Option<String>,
    /// The connection's number, from 0, in the order of acceptance.
    pub connection: u64,
    /// HTTP version, like `HTTP/1.1`.
    pub version: String,
    /// Method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Wire format; absent for built-in endpoints and unknown paths.
    pub dialect: Option<Dialect>,
    /// The requested model.
    pub model: Option<String>,
    /// Whether a stream was requested.
    pub stream: bool,
    /// Messages, or inputs to embed.
    pub messages: u32,
    /// Bytes of all texts of the prompt.
    pub prompt_bytes: u64,
    /// Input tokens.
    pub prompt_tokens: u64,
    /// Hash of all texts of the prompt, concatenated.
    pub prompt_hash: u64,
    /// Hashes of the same text in blocks of 2,048 bytes (512 tokens): prompts with a common prefix
    /// share their first hashes.
    pub prompt_blocks: Vec<u64>,
    /// Hash of the last text without the marker before it (five words and `---`), with `draw:
    /// prompt` only.
    pub content_hash: Option<u64>,
    /// The first 60 characters of the first text, with `log_text` only.
    pub prompt_head: Option<String>,
    /// The turn, for models with a `tool_loop` only.
    pub tool_turn: Option<ToolTurnRecord>,
    /// The JSON-RPC message, for requests to `/mcp` and `/a2a` only.
    pub rpc: Option<Box<RpcRecord>>,
    /// For `/ws/chat` only. A turn has the status 101 or the status of its error message; its id is
    /// the handshake's id with `/` and the turn.
    pub websocket: Option<Box<WebSocketRecord>>,
    /// When the first bytes of the request arrived, by the kernel's timestamp, or else when they
    /// were read.
    pub arrived: u64,
    /// When the first bytes of the request were read.
    pub received: u64,
    /// When the last bytes of its head were read.
    pub head_complete: u64,
    /// When the last bytes of its body were read. All due times are relative to it.
    pub body_complete: u64,
    /// HTTP status; 0 if no response was sent.
    pub status: u16,
    /// Output tokens planned.
    pub planned_tokens: u32,
    /// The planned fault, written as in the `x-mock-fault` header.
    pub fault: Option<String>,
    /// The body chunks, in order.
    pub chunks: Vec<ChunkRecord>,
    /// When it ended: after the last write, or when the end was detected.
    pub finished: u64,
    /// How it ended.
    pub end: Option<RequestEnd>,
}
