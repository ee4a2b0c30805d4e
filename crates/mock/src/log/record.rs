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

    /// Its name in the log and in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::ClientGone => "client_gone",
            Self::ShutDown => "shut_down",
        }
    }
}

/// A body chunk: bytes that were written at once. Times are nanoseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChunkRecord {
    /// When it was planned to be sent.
    pub due: u64,
    /// When its bytes were handed to the connection.
    pub handed: u64,
    /// When the `write` of its last byte returned; 0 if that never happened.
    pub written: u64,
    /// Body bytes, without HTTP's chunk framing.
    pub bytes: u64,
    /// Output tokens in it.
    pub tokens: u32,
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
    /// Wire format; none for built-in endpoints and unknown paths.
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
    /// Hash of the last text without the id before it (`[UUID]`), with `draw: prompt` only.
    pub content_hash: Option<u64>,
    /// The first 60 characters of the first text, with `log_text` only.
    pub prompt_head: Option<String>,
    /// When the first bytes of the request arrived, by the kernel's timestamp. Without a timestamp:
    /// when they were read.
    pub arrived: u64,
    /// When the first bytes of the request were read.
    pub received: u64,
    /// When the last bytes of its head were read.
    pub head_complete: u64,
    /// When the last bytes of its body were read. All due times count from here.
    pub body_complete: u64,
    /// HTTP status; 0 if no response was sent.
    pub status: u16,
    /// Output tokens planned.
    pub planned_tokens: u32,
    /// The planned fault, written as in the `x-mock-fault` header.
    pub fault: Option<String>,
    /// The body chunks, in order.
    pub chunks: Vec<ChunkRecord>,
    /// When it ended: after the last write, or when its end was detected.
    pub finished: u64,
    /// How it ended.
    pub end: Option<RequestEnd>,
}
