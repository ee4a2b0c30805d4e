//! Tests of the crate through its public API.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod pairs;
mod rebuilding;
mod reference;
mod rows;
mod support;
mod timelines;
