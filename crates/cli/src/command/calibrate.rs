//! `plimsoll calibrate`: checks the accuracy of Plimsoll on this machine.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_calibrate::{
    EXPERIMENTS, Effort, Experiment, Progress, Record, Runner, calibrate, serve,
};
use plimsoll_report::format::utc;

use crate::console;
use crate::environment::FdLimit;
use crate::exit::Exit;
use crate::progress::{StatusOutput, Steps, Ui, UiFlag};

const AFTER: &str = include_str!("calibrate.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Run only these tests, like T4,T6 [default: all but T18]
    #[arg(long, value_name = "TESTS", value_delimiter = ',', value_parser = parse_test)]
    only: Vec<Experiment>,
    /// Run more and longer tests, including T18, and print a line for each; with --show print the
    /// lines
    #[arg(long)]
    full: bool,
    /// Duration of the soak test (T18) in minutes; T18 runs with --full or --only T18
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u32,
    /// Show the stored result of this host again; nothing is run
    #[arg(long, conflicts_with_all = ["only", "minutes"])]
    show: bool,
    /// Print the record as JSON instead of the lines
    #[arg(long)]
    json: bool,
    /// File for the record [default: `plimsoll/calibration.json` in `$XDG_STATE_HOME` or
    /// `~/.local/state`; none with --only]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Run as a reference server
    #[arg(long, hide = true)]
    serve: bool,
}

/// Runs the tests and stores the record.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    // If the limit cannot be raised, the tests report the missing descriptors. Reference servers
    // need descriptors, too.
    let _ = FdLimit::raise();
    if flags.serve {
        serve()?;
        return Ok(Exit::Pass);
    }
    if flags.show {
        return flags.show_stored();
    }
    let exe = env::current_exe()?;
    let effort = Effort { full: flags.full, soak_minutes: flags.minutes };
    let runner = Runner::new(Some(exe), effort)?;
    let mut printed = Ok(());
    let steps = Steps::begin(&StatusOutput::open(Ui::for_process(UiFlag::Auto, false)));
    let record =
        calibrate(&runner, &flags.tests(), env!("CARGO_PKG_VERSION"), &mut |progress: Progress<
            '_,
        >| match progress
        {
            Progress::Begun { experiment, number, of } => {
                steps.step(&format!("{number}/{of} {} {}", experiment.id, experiment.title));
            }
            Progress::Over(finding) if flags.full && !flags.json && printed.is_ok() => {
                printed = steps.above(|| console::print_line(&finding.to_string()));
            }
            Progress::Over(_) => {}
        });
    drop(steps);
    printed?;
    flags.store(&record)?;
    Ok(exit_of(&record))
}

/// The exit code of a calibration with this record.
fn exit_of(record: &Record) -> Exit {
    if record.passed() { Exit::Pass } else { Exit::Invalid }
}

impl Flags {
    fn tests(&self) -> Vec<Experiment> {
        EXPERIMENTS
            .into_iter()
            .filter(|test: &Experiment| match self.only.as_slice() {
                [] => self.full || !test.is_on_request,
                only => only.iter().any(|one| one.id == test.id),
            })
            .collect()
    }

    /// Prints the stored record as it was printed when it was made.
    fn show_stored(&self) -> Result<Exit> {
        let record = match &self.record {
            Some(path) => Record::load_from(path)?,
            None => Record::load()?,
        };
        let record = record.context(
            "no calibration of this host is stored, or it was made on another kernel or CPU: run `plimsoll calibrate`",
        )?;
        if self.json {
            console::print_line(&serde_json::to_string_pretty(&record)?)?;
            return Ok(exit_of(&record));
        }
        if self.full {
            let when = utc(record.taken_unix_s.saturating_mul(1_000_000_000));
            console::print_line(&format!("calibrated {when} by plimsoll {}", record.tool_version))?;
            for finding in &record.findings {
                console::print_line(&finding.to_string())?;
            }
        }
        print_end(&record, None)?;
        Ok(exit_of(&record))
    }

    /// Stores and prints the record. With `--only` it is stored only in the file of `--record`: a
    /// part of the tests must not replace the record of all.
    fn store(&self, record: &Record) -> Result<()> {
        let path = self
            .record
            .clone()
            .or_else(|| if self.only.is_empty() { Record::default_path() } else { None });
        if let Some(path) = &path {
            record.store(path)?;
        }
        if self.json {
            console::print_line(&serde_json::to_string_pretty(record)?)?;
            if let Some(path) = &path {
                console::eprint_line(&format!("record: {}", path.display()));
            }
            return Ok(());
        }
        print_end(record, path.as_deref())
    }
}

fn print_end(record: &Record, path: Option<&Path>) -> Result<()> {
    let mut screen = record.screen();
    if let Some(path) = path {
        screen.file(&format!("record: {}", path.display()));
    }
    Ok(console::print_screen(&screen)?)
}

fn parse_test(name: &str) -> Result<Experiment, String> {
    Experiment::named(name)
        .ok_or_else(|| "write names of tests from T1 to T29, separated by commas".to_owned())
}
