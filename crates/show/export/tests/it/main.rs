//! Live metrics, their server and the push, over real sockets.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod live;
mod push;
mod server;
mod support;
