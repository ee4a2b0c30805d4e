//! Load against the mock over sockets: what the engine reports is what the mock has seen.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests may fail loudly"
)]

mod a2a;
mod agent;
mod agent_server;
mod closed_model;
mod examples;
mod mcp;
mod open_model;
mod outcomes;
mod pauses;
mod probe;
mod support;
mod timing;
mod versus;
mod websocket;
