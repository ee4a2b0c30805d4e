//! Compares targets that carried out the same requests: each target's overhead, and which target is
//! better.
//!
//! ```text
//! Facts + blocks of pairs --judge--> Versus --combine--> Versus over rounds --text, json--> shown
//! ```
//!
//! - [`Facts`]: facts about a run other than its blocks
//! - [`judge`]: judges one round; [`combine`]: combines several rounds of the same plan
//! - [`Versus`]: the result, stored as `versus.json`
//! - [`screen()`], [`report()`], [`json()`], [`csv()`], [`prometheus()`]: output formats
//! - [`Decider`]: decides during the run whether it may end
//!
//! Differences are computed per pair, never between two distributions; `docs/statistics.md`
//! explains the method. The crate uses no sockets, files or clocks.

mod answers;
mod batching;
mod claims;
mod combine;
mod comparisons;
mod conclusion;
mod control;
mod cpu;
mod csv;
mod decider;
mod differences;
mod disturbance;
mod facts;
mod figure;
mod generator;
mod judge;
mod outage;
mod pairs;
mod prometheus;
mod result;
mod streams;
mod targets;
mod text;
mod threshold;

pub use combine::combine;
pub use conclusion::Conclusion;
pub use csv::{csv, json, read_json};
pub use decider::{Decider, DifferenceSoFar};
pub use facts::{CpuReading, Facts, Schedule, StageFacts, TakenOut, TargetFacts};
pub use figure::Figure;
pub use judge::judge;
pub use plimsoll_stats::Looks;
pub use prometheus::prometheus;
pub use result::{
    BlockCounts, Claim, Control, CpuDifference, Difference, Disturbance, ErrorDifference, Kind,
    OVERLOAD, Outage, Role, RoundResult, SCHEMA, Stated, Stopping, TargetMatrix, TargetResult,
    Verdicts, Versus, WorkloadMismatch,
};
pub use streams::Streams;
pub use text::{LIMITS, NOT_SHOWN, failures_and_streams, report, screen};
pub use threshold::AddedThreshold;
