//! Keys of the listener, of error responses and of the store.

use std::path::PathBuf;

use plimsoll_gateway_store::FailureMode;
use serde::Deserialize;
use smart_default::SmartDefault;

use super::secret::Secret;
use crate::config::units::{ByteSize, HumanDuration};

/// Limits on connections and requests.
#[derive(Clone, Copy, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// Largest head of a request.
    #[default(ByteSize(16 << 10))]
    pub header_bytes: ByteSize,
    /// Most headers of a request.
    #[default(100)]
    pub headers: usize,
    /// Largest body of a request, enforced while it arrives.
    #[default(ByteSize(1 << 20))]
    pub body_bytes: ByteSize,
    /// A connection without a complete head in this time is closed; so is an idle one.
    #[default(HumanDuration::secs(60))]
    pub header_timeout: HumanDuration,
    /// A body must be complete in this time.
    #[default(HumanDuration::secs(30))]
    pub body_timeout: HumanDuration,
    /// A client that reads no byte of a response for this long is disconnected; over HTTP/2 its
    /// stream is reset.
    #[default(HumanDuration::secs(30))]
    pub write_timeout: HumanDuration,
    /// A `WebSocket` without traffic for this long is closed.
    #[default(HumanDuration::secs(300))]
    pub websocket_timeout: HumanDuration,
    /// Most open connections of each worker, `WebSocket`s included; further ones wait in the
    /// kernel's queue.
    #[default(20_000)]
    pub connections: usize,
    /// Most bytes of messages in memory: bodies read as a whole, unread responses, conversations of
    /// chats and runs. Beyond it requests are refused with 503, and clients that stop reading are
    /// disconnected. A connection needs up to 48 KiB in addition.
    #[default(ByteSize(512 << 20))]
    pub memory: ByteSize,
    /// Most bytes for the agent loops and background runs of one tenant, or of one consumer or
    /// client address without a tenant; a quarter of `memory` if not set.
    pub owner_memory: Option<ByteSize>,
    /// Largest response of an upstream that is read as a whole, to be translated or scrubbed.
    #[default(ByteSize(64 << 20))]
    pub response_bytes: ByteSize,
    /// Time to finish requests in flight when the gateway stops.
    #[default(HumanDuration::secs(10))]
    pub drain: HumanDuration,
}

/// Certificate and key, PEM.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// File with the certificate chain, PEM.
    pub cert: PathBuf,
    /// File with the private key, PEM.
    pub key: PathBuf,
}

/// Format of error responses.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeSpec {
    /// `{"error":{"type":...,"message":...}}`
    #[default]
    Typed,
    /// the message alone, as text
    Plain,
}

/// The store of rate limits, budgets and cached responses.
#[derive(Clone, Debug, SmartDefault, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StoreSpec {
    /// URL of a Redis server, or `${NAME}` for an environment variable. Without it: the memory of
    /// this process.
    pub redis: Option<Secret>,
    /// Behaviour while Redis is unavailable.
    pub on_loss: FailureMode,
    /// Time limit of an operation on Redis.
    #[default(HumanDuration::millis(50))]
    pub timeout: HumanDuration,
}
