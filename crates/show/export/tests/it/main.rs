//! The push, over real sockets.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod push;
