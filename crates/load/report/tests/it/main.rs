//! Tests of the crate through its public API.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod exposition;
mod formats;
mod pairs;
mod policy;
mod rebuilding;
mod reference;
mod rows;
mod screens;
mod server_timing;
mod support;
mod tasks;
mod texts;
mod timelines;
mod version_0_1_0;
