//! Workloads through the public interface.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod agent;
mod agents;
mod chat;
mod embeddings;
mod http;
mod invalid_scenarios;
mod mix;
mod pairs;
mod public_traces;
mod schema;
mod sizes;
mod support;
mod tokenizer;
mod tool_servers;
mod trace;
