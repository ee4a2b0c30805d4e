//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod judging;
mod make;
mod policy;
mod recording;
mod reference;
mod summing;
mod trusting;
