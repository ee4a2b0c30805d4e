//! The search against simulated queues whose knee is known.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod queue;
mod search;
mod shown;
mod turns;
