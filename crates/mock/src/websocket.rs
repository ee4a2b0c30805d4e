//! A chat over a WebSocket at `/ws/chat`. Source: RFC 6455.
//!
//! A client sends a text `{"message":"..."}`. The answer is one message per event of the model:
//! `{"type":"delta","text":"..."}` and then `{"type":"done","usage":{...}}`, or
//! `{"type":"error","error":{...}}`.

mod chat;
mod frame;
mod handshake;
mod socket;

pub(crate) use chat::Chat;
pub(crate) use frame::put_text;
pub(crate) use handshake::accept;

/// The path.
pub(crate) const PATH: &str = "/ws/chat";
