//! The WebSocket protocol, client side: the handshake and frames without I/O, which accept any
//! split of their bytes, and a connection over a socket.
//!
//! Rules and section numbers are from RFC 6455.

mod connection;
mod error;
mod frame;
mod frame_reader;
mod session;
mod upgrade;

pub use connection::{MessageHandler, UpgradeRequest, WebSocket};
pub use error::FrameError;
pub use frame::{Opcode, client_frame_len, mask, push_header};
pub use frame_reader::{CloseFrame, FrameReader, Incoming, Message};
pub use session::Session;
pub use upgrade::{Upgrade, UpgradeEnd, accept_of, upgrade_headers};

/// Close code: the connection has served its purpose (7.4.1).
pub const NORMAL: u16 = 1000;
/// Close code: the client aborts (7.4.1).
pub const GOING_AWAY: u16 = 1001;
