//! `plimsoll calibrate`: the instrument proves its own accuracy on this machine.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_calibrate::{
    EXPERIMENTS, Effort, Experiment, Finding, Record, Runner, calibrate, serve,
};

use crate::console;
use crate::exit::Exit;
use crate::fd_limit::FdLimit;

const AFTER: &str = "\
Examples:
  plimsoll calibrate
  plimsoll calibrate --only T4,T6
  plimsoll calibrate --only T18 --minutes 10

Each line is a test against a reference server that knows the truth: the figure nearest to its bound, its error and the bound. `not run` says what kept a test from being carried out, which is no pass; `elsewhere` is a test that is not meant for this host. The record is kept for later runs to quote. Leave the machine alone meanwhile: what is measured is this host as it is.

Exit code: 0 if all passed, else 3.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
#[expect(clippy::struct_excessive_bools, reason = "flags, as they are typed")]
pub(crate) struct Flags {
    /// Only these tests, like T4,T6
    #[arg(long, value_name = "TESTS", value_delimiter = ',', value_parser = test)]
    only: Vec<Experiment>,
    /// Longer runs, and more of them
    #[arg(long)]
    full: bool,
    /// Length of the soak (T18), in minutes; it is carried out with --full, or by name
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u32,
    /// The record as JSON on stdout, in place of the lines
    #[arg(long)]
    json: bool,
    /// Where the record is kept [default: `plimsoll/calibration.json` in the user's folder for
    /// state]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Serve as a reference server
    #[arg(long, hide = true)]
    serve: bool,
}

/// Carries the tests out, and keeps the record of all of them.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    // As for every other output: if it cannot be raised, the tests say what is missing. Reference
    // servers need descriptors as well.
    let _ = FdLimit::raise();
    if flags.serve {
        serve()?;
        return Ok(Exit::Pass);
    }
    let exe = env::current_exe().context("cannot find this binary")?;
    let effort = Effort { full: flags.full, soak_minutes: flags.minutes };
    let runner = Runner::new(Some(exe), effort)?;
    let mut told = Ok(());
    let mut tell = |finding: &Finding| {
        if !flags.json && told.is_ok() {
            told = console::print_line(&finding.to_string());
        }
    };
    let record = calibrate(&runner, &flags.tests(), env!("CARGO_PKG_VERSION"), &mut tell);
    told?;
    flags.keep(&record)?;
    Ok(if record.passed() { Exit::Pass } else { Exit::Invalid })
}

impl Flags {
    fn tests(&self) -> Vec<Experiment> {
        let wanted = |test: &Experiment| match self.only.as_slice() {
            [] => self.full || !test.is_on_request(),
            only => only.iter().any(|one| one.id == test.id),
        };
        EXPERIMENTS.into_iter().filter(wanted).collect()
    }

    /// A part of the tests proves a part: it is kept only where the user says.
    fn keep(&self, record: &Record) -> Result<()> {
        let usual = || if self.only.is_empty() { Record::default_path() } else { None };
        let path = self.record.clone().or_else(usual);
        if let Some(path) = &path {
            record.store(path)?;
        }
        if self.json {
            console::print_line(&serde_json::to_string_pretty(record)?)?;
        } else {
            console::print_line(&record.quote())?;
        }
        if let Some(path) = path {
            console::say(&format!("record: {}", path.display()));
        }
        Ok(())
    }
}

fn test(name: &str) -> Result<Experiment, String> {
    Experiment::named(name).ok_or_else(|| "write the name of a test, T1 to T21".to_owned())
}
