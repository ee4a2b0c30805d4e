//! The mock over real sockets, with a client that writes and parses its own bytes.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests may panic, and measure with the standard library's clock"
)]

mod a2a;
mod dialects;
mod faults;
mod log;
mod mcp;
mod recorded;
mod sdk;
mod server;
mod support;
mod timing;
mod tool_loop;
mod websocket;
