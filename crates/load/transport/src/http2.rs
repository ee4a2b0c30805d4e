//! HTTP/2 (RFC 9113): many streams on one connection.
//!
//! - [`Session`]: the connection as a state machine without I/O, so that it can be tested and
//!   fuzzed alone
//! - [`hpack`]: header compression (RFC 7541), also without I/O
//! - `Driver`: the task that owns a connection's socket. One read serves all its streams, and
//!   frames that are queued in one turn of the worker's event loop leave in one write
//! - `StreamExchange`: the exchange of one request. It queues frames, and reads the events that the
//!   driver put into the stream's inbox
//!
//! ADR 0038 explains why we do not use the `h2` crate.

mod connection_state;
mod driver;
mod error;
mod exchange;
mod flow_control;
mod frame;
mod frame_reader;
mod header_block;
pub mod hpack;
mod response_head;
mod session;
mod settings;
mod shared_connection;
mod stream_inbox;
mod stream_table;
mod write_buffer;

pub use error::{ConnectionError, ErrorCode, StreamError};
pub use response_head::{DecodedHead, HeadError};
pub use session::{Event, NewRequest, Session};
pub use stream_table::StreamKey;

pub(crate) use exchange::StreamExchange;
pub(crate) use shared_connection::{SharedConnection, StreamSlot};
