//! Tests profiles through the public API.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod arbitrary_input;
mod builtin;
mod documents;
mod judgeable;
mod merge;
mod problems;
mod schema;
mod secrets;
mod shown;
mod support;
mod versus;
