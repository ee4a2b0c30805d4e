//! HTTP/1.1: responses parsed without I/O, however their bytes are split, and exchanges over a
//! socket.
//!
//! Rules and section numbers are those of RFC 9112.

mod chunked;
mod exchange;
mod framing;
mod response_parser;

pub(crate) use exchange::Http1Connection;
pub use response_parser::{Progress, ResponseParser, ResponsePart};
