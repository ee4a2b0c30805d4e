//! How it is said: sans-I/O encoders and incremental decoders per wire format.
//!
//! A [`Turn`] is what is to be said; a [`Dialect`] is the wire format it is said in. An [`Encoder`] turns
//! the one into the bytes of a request, a [`Decoder`] turns the bytes of the answer, however they are
//! split, into events. No sockets, no time, no scenarios here.

pub mod decode;
pub mod dialect;
pub mod encode;
pub mod error;
mod plain;
pub mod sse;
pub mod turn;

pub use decode::{Decoder, DecoderOptions, DeltaKind, ErrorDetail, WireEvent};
pub use dialect::Dialect;
pub use encode::{Encoder, EncoderOptions, TokenLimit};
pub use error::ProtocolError;
pub use turn::{HttpContent, Message, RequestContent, Role, Text, Turn};
