//! The WebSocket protocol, client side: the handshake and frames without I/O, which accept any
//! split of their bytes, and a connection over a socket.
//!
//! Rules and section numbers are from RFC 6455.

mod connection;
mod frame_reader;
mod session;
mod upgrade;

pub use connection::{MessageHandler, UpgradeRequest, WebSocket};
pub use frame_reader::{
    CloseFrame, FrameReader, Incoming, Message, Opcode, client_frame_len, mask, push_header,
};
use plimsoll_measure::ErrorClass;
pub use session::Session;
pub use upgrade::{Upgrade, UpgradeEnd, accept_of, upgrade_headers};

use crate::failure::Failure;

/// Close code: the connection has served its purpose (7.4.1).
pub const NORMAL: u16 = 1000;
/// Close code: the client aborts (7.4.1).
pub const GOING_AWAY: u16 = 1001;

/// Why the frames of a target are invalid. The numbers are sections of RFC 6455.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A reserved bit is set.
    #[error("a frame has a reserved bit, and no extension was agreed on (RFC 6455, 5.2)")]
    ReservedBit,
    /// The opcode is reserved.
    #[error("a frame has the reserved opcode {0} (RFC 6455, 5.2)")]
    ReservedOpcode(u8),
    /// The frame is masked, which only clients may do.
    #[error("a frame of the server is masked (RFC 6455, 5.1)")]
    Masked,
    /// A control frame is fragmented.
    #[error("a control frame is fragmented (RFC 6455, 5.5)")]
    FragmentedControl,
    /// A control frame has more than 125 bytes.
    #[error("a control frame is longer than 125 bytes (RFC 6455, 5.5)")]
    LongControl,
    /// The length does not use the shortest form, or its highest bit is set.
    #[error("the length of a frame is not in its shortest form (RFC 6455, 5.2)")]
    LengthForm,
    /// A continuation without a first fragment.
    #[error("a continuation frame continues nothing (RFC 6455, 5.4)")]
    NothingToContinue,
    /// A second message between the fragments of one.
    #[error("a message begins between the fragments of another (RFC 6455, 5.4)")]
    UnfinishedMessage,
    /// A text that is not UTF-8, or the reason of a close frame.
    #[error("a text is not UTF-8 (RFC 6455, 8.1)")]
    NotUtf8,
    /// A close frame whose body has one byte.
    #[error("a close frame has half of a code (RFC 6455, 5.5.1)")]
    CloseLength,
    /// A forbidden close code.
    #[error("a close frame has the code {0}, which nobody may send (RFC 6455, 7.4)")]
    CloseCode(u16),
    /// A message beyond the limit.
    #[error("a message is larger than {0} bytes")]
    TooLarge(usize),
}

impl FrameError {
    /// Code of the close frame for this violation (7.4.1).
    pub const fn close_code(self) -> u16 {
        match self {
            Self::NotUtf8 => 1007,
            Self::TooLarge(_) => 1009,
            _ => 1002,
        }
    }

    /// Error class of the turn.
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::TooLarge(_) => ErrorClass::BodyTooLarge,
            _ => ErrorClass::WebsocketProtocol,
        }
    }
}

impl From<FrameError> for Failure {
    fn from(error: FrameError) -> Self {
        Self::new(error.class(), error.to_string())
    }
}
