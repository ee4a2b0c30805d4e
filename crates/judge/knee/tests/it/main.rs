//! The search against simulated targets whose capacity is known.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod search;
mod shown;
mod target;
mod turns;
