//! The search against simulated queues whose knee is known.

mod queue;
mod search;
mod shown;
