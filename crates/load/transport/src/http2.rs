//! HTTP/2 (RFC 9113): many streams on one connection.
//!
//! - [`Session`]: the connection as a state machine without I/O, so that it can be tested and fuzzed by itself
//! - [`hpack`]: compression of heads (RFC 7541), likewise
//! - `Driver`: the task that owns the socket of a connection. One read serves all its streams; what they queue in one
//!   turn of the worker is written at once
//! - `Exchange`: the task of a request. It queues frames, and reads what the driver put in its mailbox
//!
//! Why it is our own: ADR 0038.

mod driver;
mod error;
mod exchange;
mod fields;
mod flow;
mod frame;
mod head;
pub mod hpack;
mod link;
mod mail;
mod output;
mod peer;
mod reader;
mod session;
mod streams;

pub use error::{Code, Violation};
pub use fields::{Fields, Own};
pub use head::{Fault, Head};
pub use session::{Ask, Cut, Event, Session};
pub use streams::Key;

pub(crate) use link::{Multiplexed, StreamSlot};

/// What one stream may receive before we have read it: a large answer is not throttled by the way back and forth.
const STREAM_WINDOW: u32 = 4 << 20;
/// The same for all streams of a connection.
const CONNECTION_WINDOW: u32 = 64 << 20;
