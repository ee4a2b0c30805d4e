//! HTTP/1.1: exchanges without I/O, which accept any split of their bytes, and over a socket.
//!
//! Rules and section numbers are from RFC 9112.

mod chunked;
mod exchange;
mod exchange_state;
mod framing;
mod outgoing_request;
mod response_parser;

pub(crate) use exchange::Http1Connection;
pub use exchange_state::ExchangeState;
pub use outgoing_request::OutgoingRequest;
pub use response_parser::{Progress, ResponseParser, ResponsePart};
