//! HTTP/1.1 without I/O: request heads out, responses in, however their bytes are split.
//!
//! Rules and section numbers are those of RFC 9112.

mod chunked;
mod framing;
mod request;
mod response;

pub use request::{RequestHead, RequestHeadError};
pub use response::{Part, Progress, ResponseHead, ResponseParser};
