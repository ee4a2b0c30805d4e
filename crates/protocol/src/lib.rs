//! How it is said: sans-I/O encoders and incremental decoders per wire format.
//!
//! A [`Turn`] is what is to be said; a [`Dialect`] is the wire format it is said in. An encoder turns
//! the one into the bytes of a request, a decoder turns the bytes of the answer, however they are
//! split, into events. No sockets, no time, no scenarios here.

pub mod dialect;
pub mod turn;

pub use dialect::Dialect;
pub use turn::{Ask, HttpAsk, Message, Role, Text, Turn};
