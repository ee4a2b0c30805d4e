//! `plimsoll report`: prints the report of a stored run, suite or comparison.

mod found;
mod stored;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_compare::Comparison;
use plimsoll_report::{csv, json, prometheus, text, timeline_json};
use plimsoll_suite::Report;

use super::suite::text_of;
use super::suite_page;
use super::versus::WIDTH;
use crate::console;
use crate::exit::{Exit, UsageError};
use crate::run_dir::{FILE_WIDTH, file};
use found::{Found, Kind, find};
use stored::{Stored, exemplars, read, versus};

const AFTER: &str = "\
Examples:
  plimsoll report                                          the latest result in runs/
  plimsoll report runs/20260102T030405Z-realistic
  plimsoll report runs/20260102T030405Z-realistic --format csv > run.csv
  plimsoll report runs/20260102T030405Z-suite-tiers --html > tiers.html

Of a folder of results the latest is shown: the one whose name has the latest time, or whose file was written last where the name has none. A line on stderr says which, and how many others there are. Suites and comparisons have the formats text and json, and --html.

A run that was killed has no summary.json. Its report is then computed from plan.json and results.jsonl, as far as the rows go, and is marked invalid.

Exit code: 0 if the report could be printed, whatever its result; 3 if the run did not finish, so that it is computed from the rows, or if it could not be printed.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folder of a run, a suite or a comparison, or a folder of such folders
    #[arg(value_hint = ValueHint::DirPath, value_name = "FOLDER", default_value = "runs")]
    run: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print the page with charts, as report.html holds it
    #[arg(long, conflicts_with = "format")]
    html: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    Prometheus,
    Timeline,
}

/// Prints the report.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let Found { kind, folder, note } = find(&flags.run)?;
    if let Some(note) = note {
        console::eprint_line(&note);
    }
    match kind {
        Kind::Run => of_run(flags, &folder),
        Kind::Suite => of_suite(flags, &folder.join(file::SUITE)),
        Kind::Comparison => of_comparison(flags, &folder.join(file::COMPARISON)),
    }
}

fn of_run(flags: &Flags, folder: &Path) -> Result<Exit> {
    let Stored { summary, timeline } = read(folder)?;
    let versus = versus(folder)?;
    if flags.html {
        let exemplars = exemplars(folder)?;
        let (timeline, exemplars) = (timeline.as_ref(), exemplars.as_ref());
        let (summary, versus) = (&summary, versus.as_ref());
        let input = plimsoll_page::Input { summary, timeline, exemplars, versus };
        console::print(&plimsoll_page::page(&input))?;
        return Ok(Exit::of_report(summary));
    }
    let report = match flags.format {
        Format::Text => text(&summary, console::full_style(FILE_WIDTH)),
        Format::Json => json(&summary)?,
        Format::Csv => csv(&summary)?,
        Format::Prometheus => prometheus(&summary),
        Format::Timeline => timeline_json(&timeline.ok_or_else(no_timeline)?)?,
    };
    if let (Format::Text, Some(versus)) = (flags.format, versus) {
        let width = console::full_style(WIDTH).width;
        console::print_line(&plimsoll_versus::text(&versus, width))?;
    }
    console::print(&report)?;
    Ok(Exit::of_report(&summary))
}

fn of_suite(flags: &Flags, path: &Path) -> Result<Exit> {
    let bytes = contents(path)?;
    let report = Report::read_json(&bytes).with_context(|| path.display().to_string())?;
    let shown = Shown { text: || text_of(&report), page: || suite_page::page(&report) };
    shown.print("suite", flags, &bytes)
}

fn of_comparison(flags: &Flags, path: &Path) -> Result<Exit> {
    let bytes = contents(path)?;
    let comparison = Comparison::read_json(&bytes).with_context(|| path.display().to_string())?;
    let page = || plimsoll_page::comparison_page(&comparison);
    let shown =
        Shown { text: || comparison.text(console::full_style(super::compare::WIDTH).width), page };
    shown.print("comparison", flags, &bytes)
}

fn contents(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A result that has the formats text and JSON, and a page.
struct Shown<T, P> {
    text: T,
    page: P,
}

impl<T: Fn() -> String, P: Fn() -> String> Shown<T, P> {
    /// Prints it; `bytes` are its JSON as it is stored.
    fn print(&self, kind: &str, flags: &Flags, bytes: &[u8]) -> Result<Exit> {
        let shown = match flags.format {
            _ if flags.html => (self.page)(),
            Format::Text => (self.text)(),
            Format::Json => String::from_utf8_lossy(bytes).into_owned(),
            Format::Csv | Format::Prometheus | Format::Timeline => {
                let why = format!("a {kind} has the formats text and json, and --html");
                return Err(UsageError(why).into());
            }
        };
        console::print(&shown)?;
        Ok(Exit::Pass)
    }
}

fn no_timeline() -> UsageError {
    UsageError("the run has no timeline.json: an earlier version of plimsoll made it".to_owned())
}
