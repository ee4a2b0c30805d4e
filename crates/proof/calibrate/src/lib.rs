//! Proves the accuracy of the load generator on this machine.
//!
//! ```text
//! calibrate(runner, experiments)
//!   -- each Experiment --> Finding { checks: measured figure and its bound } --> Record
//!
//! Runner: reference servers (separate processes, another core) and the engine, as a run uses it
//! ```
//!
//! Expected values come from the servers' own records or from closed forms, never from the
//! product's code. An experiment that could not be carried out is reported as such; skipping is
//! never passing. Users know the experiments as tests T1 to T29.

mod error;
mod experiment;
mod finding;
mod record;
mod runner;
mod screen;
mod server;
mod tool_process;

use plimsoll_measure::{Moment, MonotonicClock};

pub use error::CalibrateError;
pub use experiment::{EXPERIMENTS, Experiment};
pub use finding::{Check, ExperimentResult, Finding};
pub use plimsoll_runner::Bound;
pub use record::{Costs, Floor, Host, Record, SCHEMA};
pub use runner::{Effort, Runner};

/// A calibration that is going on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'p> {
    /// An experiment begins; `number` counts from 1 up to `of`.
    Begun {
        /// The experiment.
        experiment: Experiment,
        /// Its number.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// It is over.
    Over(&'p Finding),
}

/// Carries experiments out one after another; `observe` is called before and after each.
pub fn calibrate(
    runner: &Runner,
    experiments: &[Experiment],
    tool_version: &str,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Record {
    let taken = MonotonicClock::start().unix_nanos(Moment::EPOCH);
    let mut findings = Vec::new();
    for (number, &experiment) in (1..).zip(experiments) {
        observe(Progress::Begun { experiment, number, of: experiments.len() });
        let finding = experiment.run(runner);
        observe(Progress::Over(&finding));
        findings.push(finding);
    }
    Record {
        schema: SCHEMA.to_owned(),
        tool_version: tool_version.to_owned(),
        taken_unix_s: taken / 1_000_000_000,
        host: Host::read(),
        separate_cores: runner.separate_cores(),
        debug_build: cfg!(debug_assertions),
        floor: runner.floor.get().copied(),
        costs: runner.costs.get().copied(),
        findings,
    }
}

/// Runs a reference server for the calibration that started this process. Reads its assignment from
/// standard input and writes its record to standard output.
///
/// # Errors
/// Where the assignment cannot be read, or the server cannot start.
pub fn serve() -> Result<(), CalibrateError> {
    server::serve()
}
