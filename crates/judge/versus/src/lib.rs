//! Judges targets that carried out the same requests: what each adds, and which is better.
//!
//! ```text
//! Facts + blocks of pairs --judge--> Versus --combine--> Versus over rounds --text, json--> shown
//! ```
//!
//! - [`Facts`]: what is known of a run beside its blocks
//! - [`judge`]: one round; [`combine`]: several rounds of the same plan
//! - [`Versus`]: the result, as `versus.json` holds it
//! - [`screen()`], [`text()`], [`json()`], [`csv()`], [`prometheus()`]: shown
//! - [`outlook`]: before the run, what it cannot see; [`Decider`]: during it, whether it may end
//!
//! Differences are taken of pairs, never of two distributions; `docs/statistics.md` explains how.
//! Nothing here knows sockets, files or clocks.

mod added_distribution;
mod batching;
mod claims;
mod combine;
mod comparisons;
mod control;
mod cpu;
mod csv;
mod decider;
mod detectable;
mod differences;
mod disturbance;
mod errors;
mod facts;
mod figure;
mod generator;
mod json;
mod judge;
mod margin;
mod outage;
mod outlook;
mod own_times;
mod pairs;
mod policy;
mod prometheus;
mod result;
mod role;
mod stalls;
mod stated;
mod targets;
mod text;
mod threshold;
mod workload_mismatch;

pub use added_distribution::{AddedDistribution, added_bin_start_ns};
pub use combine::combine;
pub use csv::csv;
pub use decider::{Decider, DifferenceSoFar};
pub use facts::{CpuReading, Facts, Schedule, StageFacts, TakenOut, TargetFacts};
pub use figure::Figure;
pub use json::{json, read_json};
pub use judge::judge;
pub use outlook::outlook;
pub use plimsoll_stats::Looks;
pub use prometheus::prometheus;
pub use result::{
    BlockCounts, Claim, Control, CpuDifference, Detectable, Difference, DifferentDecision,
    Disturbance, ErrorDifference, Kind, Lost, Outage, SCHEMA, Stopping, TargetMatrix, TargetResult,
    Verdicts, Versus, WorkloadMismatch,
};
pub use role::Role;
pub use stalls::Stalls;
pub use stated::Stated;
pub use text::{screen, text};
pub use threshold::AddedThreshold;
