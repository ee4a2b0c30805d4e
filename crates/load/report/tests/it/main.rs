//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod example;
mod exposition;
mod formats;
mod policy;
mod rebuilding;
mod rows;
mod texts;
