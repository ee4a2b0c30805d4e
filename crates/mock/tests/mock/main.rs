//! The mock over real sockets, against a client that writes and reads its bytes by hand.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and measure with the standard library's clock"
)]

mod client;
mod dialects;
mod faults;
mod log;
mod server;
mod timing;
