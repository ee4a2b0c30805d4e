//! Tests of the crate through its public API: against an oracle, and by simulation of runs whose
//! truth is known. Seeds are fixed.
#![expect(clippy::print_stdout, reason = "how many runs differed is worth reading")]

mod drift;
mod equal_targets;
mod failures;
mod noise;
mod oracle;
mod planted;
mod properties;
mod rounds;
mod watching;
