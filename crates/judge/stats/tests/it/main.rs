//! Tests of the crate through its public API: against an oracle, and by simulation of runs whose
//! truth is known. Seeds are fixed.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod drift;
mod equal_targets;
mod failures;
mod noise;
mod oracle;
mod planted;
mod watching;
