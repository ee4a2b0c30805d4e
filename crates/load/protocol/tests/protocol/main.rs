//! The wire formats against bytes written by hand.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod answers;
mod encode;
mod errors;
mod reading;
mod splits;
mod sse;
mod sse_oracle;
mod streams;
