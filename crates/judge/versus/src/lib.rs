//! Judges targets that carried out the same requests: what each adds, and which is better.
//!
//! ```text
//! Facts + blocks of pairs --judge--> Versus --combine--> Versus over rounds --text, json--> shown
//! ```
//!
//! - [`Facts`]: what is known of a run beside its blocks
//! - [`judge`]: one round; [`combine`]: several rounds of the same plan
//! - [`Versus`]: the result, as `versus.json` holds it
//! - [`screen()`], [`report()`], [`json()`], [`csv()`], [`prometheus()`]: shown
//! - [`Decider`]: during the run, whether it may end
//!
//! Differences are taken of pairs, never of two distributions; `docs/statistics.md` explains how.
//! Nothing here knows sockets, files or clocks.

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
mod errors;
mod facts;
mod figure;
mod findings;
mod generator;
mod json;
mod judge;
mod margin;
mod outage;
mod own_times;
mod pairs;
mod policy;
mod prometheus;
mod result;
mod role;
mod stated;
mod streams;
mod targets;
mod text;
mod threshold;

pub use combine::combine;
pub use conclusion::Conclusion;
pub use csv::csv;
pub use decider::{Decider, DifferenceSoFar};
pub use facts::{CpuReading, Facts, Schedule, StageFacts, TakenOut, TargetFacts};
pub use figure::Figure;
pub use json::{json, read_json};
pub use judge::judge;
pub use plimsoll_stats::Looks;
pub use prometheus::prometheus;
pub use result::{
    BlockCounts, Claim, Control, CpuDifference, Difference, Disturbance, ErrorDifference, Kind,
    Outage, RoundResult, SCHEMA, Stopping, TargetMatrix, TargetResult, Verdicts, Versus,
    WorkloadMismatch,
};
pub use role::Role;
pub use stated::Stated;
pub use streams::Streams;
pub use text::{report, screen};
pub use threshold::AddedThreshold;
