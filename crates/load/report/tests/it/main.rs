//! Tests of the crate through its public API.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod examples;
mod exposition;
mod formats;
mod levels;
mod policy;
mod screens;
mod server_timing;
mod shards;
mod support;
mod tasks;
mod texts;
