//! Tests of the crate through its public API: blocks are simulated, and the results must show the
//! planted differences. Seeds are fixed.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod control;
mod differences;
mod failures;
mod formats;
mod order;
mod policy;
mod rounds;
mod schedules;
mod screens;
mod simulation;
mod stopping;
mod thresholds;
mod workload;
