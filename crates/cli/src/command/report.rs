//! `plimsoll report`: prints the report of a stored run, suite, comparison or knee.

pub(in crate::command) mod found;
pub(in crate::command) mod stored;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_compare::Comparison;
use plimsoll_knee::KneeReport;
use plimsoll_report::levels::Levels;
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_report::{csv, prometheus};
use plimsoll_run_files::{summary_json, timeline_json};
use plimsoll_runner::folder::file;
use plimsoll_suite::Report;

use super::suite::text_of;
use super::suite_page;
use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::ScreenFlags;
use crate::run_result::{self, RunResult};
use found::{Found, Kind, find};
use stored::{Stored, exemplars, read, server_parts, versus};

const AFTER: &str = include_str!("report.txt").trim_ascii_end();

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
    /// The requested output.
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

/// Output format of a result.
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
    Levels,
    Csv,
    Prometheus,
    Timeline,
    Markdown,
    /// Test cases for CI
    Junit,
    /// Annotations for GitHub Actions
    Github,
}

/// Prints the report.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let Found { kind, folder, note } = find(&flags.run)?;
    if let Some(note) = note {
        console::eprint_line(&note);
    }
    match kind {
        Kind::Run => of_run(flags, &folder),
        Kind::Suite => of_stored(flags, &folder.join(file::SUITE), "suite", |bytes| {
            let report = Report::read_json(bytes)?;
            let page = suite_page::page(&report);
            Ok((report.screen(rest(&folder)), text_of(&report), page))
        }),
        Kind::Comparison => {
            of_stored(flags, &folder.join(file::COMPARISON), "comparison", |bytes| {
                let comparison = Comparison::read_json(bytes)?;
                let width = console::full_style(super::compare::WIDTH).width;
                let page = plimsoll_page::comparison_page(&comparison);
                Ok((comparison.screen(), comparison.text(width), page))
            })
        }
        Kind::Knee => of_stored(flags, &folder.join(file::KNEE), "knee", |bytes| {
            let report = KneeReport::read_json(bytes)?;
            let width = console::full_style(super::knee::WIDTH).width;
            let page = plimsoll_page::knee_page(&report);
            Ok((report.screen(rest(&folder)), report.text(width, rest(&folder)), page))
        }),
    }
}

fn of_run(flags: &Flags, folder: &Path) -> Result<Exit> {
    let Stored { summary, timeline } = read(folder)?;
    let versus = versus(folder)?;
    let result = RunResult { summary: &summary, exemplars: None, versus: versus.as_ref() };
    let screen = result.screen(rest(folder));
    match flags.output() {
        Output::Screen => console::print_screen(&screen)?,
        Output::Data(format @ (Format::Markdown | Format::Junit | Format::Github)) => {
            console::print(&of_screen(&screen, format)?)?;
        }
        Output::Text | Output::Data(Format::Text) => result.print(&screen, Show::Full)?,
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
        Output::Data(Format::Levels) => {
            console::print(&run_result::levels_json(&Levels::new(&summary))?)?;
        }
        Output::Data(Format::Csv) => console::print(&csv(&summary)?)?,
        Output::Data(Format::Prometheus) => console::print(&prometheus(&summary))?,
        Output::Data(Format::Timeline) => {
            console::print(&timeline_json(&timeline.ok_or_else(no_timeline)?)?)?;
        }
    }
    Ok(Exit::of_report(&summary))
}

/// A form of a result that is made from its screen alone.
fn of_screen(screen: &Screen, format: Format) -> Result<String> {
    Ok(match format {
        Format::Junit => screen.junit()?,
        Format::Github => screen.annotations(),
        _ => screen.markdown(""),
    })
}

/// Location of the details that a screen leaves out.
fn rest(folder: &Path) -> Rest {
    run_result::rest(Some(folder))
}

/// Prints the requested form of a result with a screen, a text and a page; JSON is printed as
/// stored.
fn of_stored(
    flags: &Flags,
    path: &Path,
    kind: &str,
    read: impl FnOnce(&[u8]) -> Result<(Screen, String, String)>,
) -> Result<Exit> {
    let bytes =
        plimsoll_input::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (screen, text, page) = read(&bytes).with_context(|| path.display().to_string())?;
    match flags.output() {
        Output::Screen => console::print_screen(&screen)?,
        Output::Text | Output::Data(Format::Text) => console::print(&text)?,
        Output::Page => console::print(&page)?,
        Output::Data(Format::Json) => console::print(&String::from_utf8_lossy(&bytes))?,
        Output::Data(format @ (Format::Markdown | Format::Junit | Format::Github)) => {
            console::print(&of_screen(&screen, format)?)?;
        }
        Output::Data(Format::Levels | Format::Csv | Format::Prometheus | Format::Timeline) => {
            let why = format!(
                "a {kind} has the formats text, json, markdown, junit and github, and --html"
            );
            return Err(UsageError(why).into());
        }
    }
    Ok(Exit::Pass)
}

fn no_timeline() -> UsageError {
    UsageError("the run has no timeline.json: an earlier version of plimsoll made it".to_owned())
}
