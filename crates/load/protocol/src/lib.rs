//! Encoders and incremental decoders of the wire formats, without I/O.
//!
//! A [`Turn`] is the content of one request, and a [`Dialect`] a wire format. An [`Encoder`] writes
//! the turn as the bytes of a request. A [`Decoder`] reads the bytes of the response, however they
//! are split. Tool servers and agents use JSON-RPC, see [`rpc`]. This crate has no sockets, time or
//! scenarios.

pub mod decode;
pub mod dialect;
pub mod encode;
mod json_escape;
pub mod rpc;
pub mod sse;
mod text;
pub mod turn;

pub use decode::{
    Decoder, DecoderOptions, Delta, DeltaKind, ErrorDetail, MAX_TOOL_CALLS, PlainAnswer,
    PlainReading,
};
pub use dialect::Dialect;
pub use encode::{Encoder, EncoderOptions, ProtocolError, TokenLimit, names_credential};
pub use turn::{
    HttpContent, Kept, Message, RecordedRequest, RequestContent, Role, Text, ToolCall, ToolResult,
    Turn,
};
