//! Tests of the crate through its public API.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod folders;
mod obstacles;
mod reference;
mod shown;
mod simulated;
mod support;
mod usual_gates;
