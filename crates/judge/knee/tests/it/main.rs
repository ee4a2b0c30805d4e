//! Tests the search against simulated targets with known capacity.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod search;
mod shown;
mod target;
mod turns;
