//! The wire formats, checked against bytes written by hand.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod answers;
mod compressed_answers;
mod encode;
mod error_responses;
mod examples;
mod official_sdks;
mod plain_answers;
mod recorded_answers;
mod rpc_answers;
mod rpc_requests;
mod shapes;
mod splits;
mod sse;
mod sse_oracle;
mod streams;
mod support;
mod token_variants;
mod tool_use;
mod usage;
mod websocket;
mod whole_responses;
