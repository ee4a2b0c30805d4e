//! Proves the instrument on this machine.
//!
//! ```text
//! calibrate(bench, tests) -- each Test --> Finding { checks: measured, truth, bound } --> Record
//!
//! Bench: reference servers (own processes, own core) + the engine, as a run uses it
//! ```
//!
//! Expected values come from the servers' own records or from closed forms, never from the product's code. A test
//! that could not be carried out is reported as such; skipping is never passing.

mod bench;
mod child;
mod cores;
mod error;
mod finding;
mod ran;
mod record;
mod server;
mod statistics;
mod test;
mod wait;

use plimsoll_measure::{Moment, MonotonicClock};

pub use bench::{Bench, Effort};
pub use error::CalibrateError;
pub use finding::{Bound, Check, Finding, TestResult};
pub use record::{Floor, Host, Record, SCHEMA};
pub use test::{TESTS, Test};

/// Carries tests out one after another; `observe` is told of each as it ends.
pub fn calibrate(
    bench: &Bench,
    tests: &[Test],
    tool_version: &str,
    observe: &mut dyn FnMut(&Finding),
) -> Record {
    let taken = MonotonicClock::start().unix_nanos(Moment::EPOCH);
    let mut findings = Vec::new();
    for test in tests {
        let finding = test.run(bench);
        observe(&finding);
        findings.push(finding);
    }
    Record {
        schema: SCHEMA.to_owned(),
        tool_version: tool_version.to_owned(),
        taken_unix_s: taken / 1_000_000_000,
        host: Host::read(),
        separate_cores: bench.separate_cores(),
        debug_build: cfg!(debug_assertions),
        floor: bench.floor(),
        findings,
    }
}

/// Serves as a reference server, as the calibration that started this process wants it: orders on standard input,
/// the truth on standard output.
///
/// # Errors
/// Where the orders make no sense, or the server cannot start.
pub fn serve() -> Result<(), CalibrateError> {
    server::serve()
}
