//! The store through its public interface: limits, budgets and cached responses, in memory and in
//! Redis.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::excessive_nesting,
    reason = "tests may fail loudly, and start tasks in threads"
)]

mod limits;
mod memory;
mod records;
mod redis;
#[expect(dead_code, reason = "the unit tests of the script use more of it")]
mod redis_server;
mod support;
