//! The wire formats, checked against bytes written by hand.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod encode;
mod error_responses;
mod splits;
mod sse;
mod sse_oracle;
mod streams;
mod support;
mod usage;
mod whole_responses;
