//! `plimsoll report`: prints the report of a stored run, suite, comparison or knee.

pub(in crate::command) mod found;
pub(in crate::command) mod stored;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_compare::Comparison;
use plimsoll_knee::KneeReport;
use plimsoll_metrics::RunSummary;
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_report::{csv, prometheus, run_screen, text};
use plimsoll_run_files::{summary_json, timeline_json};
use plimsoll_runner::folder::file;
use plimsoll_suite::Report;
use plimsoll_versus::Versus;

use super::suite::text_of;
use super::suite_page;
use crate::console;
use crate::exit::{Exit, UsageError};
use crate::flags::ScreenFlags;
use crate::run_reports::FILE_WIDTH;
use crate::versus_result::WIDTH;
use found::{Found, Kind, find};
use stored::{Stored, exemplars, read, server_parts, versus};

const AFTER: &str = "\
Examples:
  plimsoll report                                          the latest result in runs/
  plimsoll report runs/20260102T030405Z-realistic --full   all of it, as report.txt holds it
  plimsoll report runs/20260102T030405Z-realistic --format csv > run.csv
  plimsoll report runs/20260102T030405Z-suite-tiers --html > tiers.html
  plimsoll report --format markdown >> \"$GITHUB_STEP_SUMMARY\"

Of a folder of results the latest is shown: the one whose name has the latest time, or whose file was written last where the name has none. A line on stderr says which, and how many others there are. Suites, comparisons and knees have the formats text, json and markdown, and --html.

A run that was killed has no summary.json. Its report is then computed from plan.json and results.jsonl, as far as the rows go, and is marked invalid.

Exit code: 0 if the report could be printed, whatever its result; 3 if the run did not finish, so that it is computed from the rows, or if it could not be printed.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folder of a run, a suite, a comparison or a knee, or a folder of such folders
    #[arg(value_hint = ValueHint::DirPath, value_name = "FOLDER", default_value = "runs")]
    run: PathBuf,
    #[command(flatten)]
    screen: ScreenFlags,
    /// Print this instead; text is the same as --full
    #[arg(long, value_enum, conflicts_with = "full")]
    format: Option<Format>,
    /// Print the page with charts, as report.html holds it
    #[arg(long, conflicts_with_all = ["format", "full"])]
    html: bool,
}

impl Flags {
    /// What is printed.
    fn output(&self) -> Output {
        match self.format {
            _ if self.html => Output::Page,
            Some(Format::Text) => Output::Text,
            Some(format) => Output::Data(format),
            None if self.screen.full => Output::Text,
            None => Output::Screen,
        }
    }
}

/// What is printed of a result.
#[derive(Clone, Copy, Debug)]
enum Output {
    /// Its main figures, as the command ended.
    Screen,
    /// The whole text.
    Text,
    Page,
    Data(Format),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    Prometheus,
    Timeline,
    Markdown,
}

/// Prints the report.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let Found { kind, folder, note } = find(&flags.run)?;
    if let Some(note) = note {
        console::eprint_line(&note);
    }
    match kind {
        Kind::Run => of_run(flags, &folder),
        Kind::Suite => of_suite(flags, &folder),
        Kind::Comparison => of_comparison(flags, &folder),
        Kind::Knee => of_knee(flags, &folder),
    }
}

fn of_run(flags: &Flags, folder: &Path) -> Result<Exit> {
    let Stored { summary, timeline } = read(folder)?;
    let versus = versus(folder)?;
    match flags.output() {
        Output::Screen => console::print_screen(&screen_of(&summary, versus.as_ref(), folder))?,
        Output::Data(Format::Markdown) => {
            console::print(&screen_of(&summary, versus.as_ref(), folder).markdown(""))?;
        }
        Output::Text | Output::Data(Format::Text) => {
            if let Some(versus) = versus {
                let width = console::full_style(WIDTH).width;
                console::print_line(&plimsoll_versus::text(&versus, &summary, width))?;
            }
            console::print(&text(&summary, console::full_style(FILE_WIDTH)))?;
        }
        Output::Page => {
            let exemplars = exemplars(folder)?;
            let server = exemplars.as_ref().map(|kept| server_parts(folder, kept)).transpose()?;
            let server = server.as_deref().unwrap_or_default();
            let (timeline, exemplars) = (timeline.as_ref(), exemplars.as_ref());
            let (summary, versus) = (&summary, versus.as_ref());
            let input = plimsoll_page::Input { summary, timeline, exemplars, versus, server };
            console::print(&plimsoll_page::page(&input))?;
        }
        Output::Data(Format::Json) => console::print(&summary_json(&summary)?)?,
        Output::Data(Format::Csv) => console::print(&csv(&summary)?)?,
        Output::Data(Format::Prometheus) => console::print(&prometheus(&summary))?,
        Output::Data(Format::Timeline) => {
            console::print(&timeline_json(&timeline.ok_or_else(no_timeline)?)?)?;
        }
    }
    Ok(Exit::of_report(&summary))
}

fn screen_of(summary: &RunSummary, versus: Option<&Versus>, folder: &Path) -> Screen {
    match versus {
        Some(versus) => plimsoll_versus::screen(versus, summary, rest(folder)),
        None => run_screen(summary, rest(folder)),
    }
}

/// Where a reader finds what a screen leaves out.
fn rest(folder: &Path) -> Rest {
    Rest::Folder(folder.display().to_string())
}

fn of_suite(flags: &Flags, folder: &Path) -> Result<Exit> {
    let path = folder.join(file::SUITE);
    let bytes = contents(&path)?;
    let report = Report::read_json(&bytes).with_context(|| path.display().to_string())?;
    let shown = Shown {
        screen: || report.screen(rest(folder)),
        text: || text_of(&report),
        page: || suite_page::page(&report),
    };
    shown.print("suite", flags, &bytes)
}

fn of_comparison(flags: &Flags, folder: &Path) -> Result<Exit> {
    let path = folder.join(file::COMPARISON);
    let bytes = contents(&path)?;
    let comparison = Comparison::read_json(&bytes).with_context(|| path.display().to_string())?;
    let shown = Shown {
        screen: || comparison.screen(),
        text: || comparison.text(console::full_style(super::compare::WIDTH).width),
        page: || plimsoll_page::comparison_page(&comparison),
    };
    shown.print("comparison", flags, &bytes)
}

fn of_knee(flags: &Flags, folder: &Path) -> Result<Exit> {
    let path = folder.join(file::KNEE);
    let bytes = contents(&path)?;
    let report = KneeReport::read_json(&bytes).with_context(|| path.display().to_string())?;
    let shown = Shown {
        screen: || report.screen(rest(folder)),
        text: || report.text(console::full_style(super::knee::WIDTH).width, rest(folder)),
        page: || plimsoll_page::knee_page(&report),
    };
    shown.print("knee", flags, &bytes)
}

fn contents(path: &Path) -> Result<Vec<u8>> {
    plimsoll_input::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A result that has a screen, the formats text and JSON, and a page.
struct Shown<S, T, P> {
    screen: S,
    text: T,
    page: P,
}

impl<S: Fn() -> Screen, T: Fn() -> String, P: Fn() -> String> Shown<S, T, P> {
    /// Prints it; `bytes` are its JSON as it is stored.
    fn print(&self, kind: &str, flags: &Flags, bytes: &[u8]) -> Result<Exit> {
        match flags.output() {
            Output::Screen => console::print_screen(&(self.screen)())?,
            Output::Text | Output::Data(Format::Text) => console::print(&(self.text)())?,
            Output::Page => console::print(&(self.page)())?,
            Output::Data(Format::Json) => console::print(&String::from_utf8_lossy(bytes))?,
            Output::Data(Format::Markdown) => {
                console::print(&(self.screen)().markdown(""))?;
            }
            Output::Data(Format::Csv | Format::Prometheus | Format::Timeline) => {
                let why = format!("a {kind} has the formats text, json and markdown, and --html");
                return Err(UsageError(why).into());
            }
        }
        Ok(Exit::Pass)
    }
}

fn no_timeline() -> UsageError {
    UsageError("the run has no timeline.json: an earlier version of plimsoll made it".to_owned())
}
