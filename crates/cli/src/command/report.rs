//! `plimsoll report`: prints the report of a stored run, suite, comparison or knee.

pub(in crate::command) mod found;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, bail};
use clap::{Args, ValueEnum, ValueHint};
use found::{Found, Kind, find};
use plimsoll_compare::Comparison;
use plimsoll_knee::KneeReport;
use plimsoll_metrics::{RunSummary, RunTimeline};
use plimsoll_page::{Suite, suite_page};
use plimsoll_report::levels::Levels;
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_report::{csv, prometheus};
use plimsoll_run_files::{
    BoundedLines, Rebuilt, RebuiltTasks, changed_files, changed_since, find_rows, open_rows,
    read_summary, read_timeline, rebuild, rebuild_tasks, summary_json, timeline_json,
};
use plimsoll_runner::folder::{StoredPlan, file, release_of_killed};
use plimsoll_suite::Report;
use plimsoll_versus::Versus;

use super::suite::text_of;
use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::ScreenFlags;
use crate::run_result::{self, RunResult};

const AFTER: &str = include_str!("report.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folder of a run, a suite, a comparison or a knee, or a folder of such folders
    #[arg(value_hint = ValueHint::DirPath, value_name = "FOLDER", default_value = "runs")]
    run: PathBuf,
    #[command(flatten)]
    screen: ScreenFlags,
    /// Print this format instead; text is the same as --full
    #[arg(long, value_enum, conflicts_with = "full")]
    format: Option<Format>,
    /// Print the page with charts, like report.html
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
            let page = page_of_suite(&report);
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
    let result = RunResult { summary: &summary, versus: versus.as_ref() };
    let screen = result.screen(rest(folder));
    match flags.output() {
        Output::Screen => console::print_screen(&screen)?,
        Output::Data(format @ (Format::Markdown | Format::Junit | Format::Github)) => {
            console::print(&of_screen(&screen, format)?)?;
        }
        Output::Text | Output::Data(Format::Text) => result.print(&screen, Show::Full)?,
        Output::Page => {
            let timeline = timeline.as_ref();
            let (summary, versus) = (&summary, versus.as_ref());
            let input = plimsoll_page::Input { summary, timeline, versus };
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
                "a {kind} supports the formats text, json, markdown, junit and github, and --html"
            );
            return Err(UsageError(why).into());
        }
    }
    Ok(Exit::Pass)
}

fn no_timeline() -> UsageError {
    UsageError("the run has no timeline.json: an earlier version of plimsoll made it".to_owned())
}

// The page of a suite.

/// `report.html` of a suite.
pub(super) fn page_of_suite(report: &Report) -> String {
    let compared = report.comparisons.iter();
    suite_page(&Suite {
        name: &report.suite,
        screen: &report.screen(Rest::Flag),
        comparisons: compared.filter_map(|c| Some((&*c.label, c.versus.as_ref()?))).collect(),
    })
}

// Stored files of a run.

/// Stored data of a run.
pub(in crate::command) struct Stored {
    pub(in crate::command) summary: RunSummary,
    /// `None` for a run of an earlier version.
    pub(in crate::command) timeline: Option<RunTimeline>,
}

/// The stored results, or those computed from the rows.
pub(in crate::command) fn read(run: &Path) -> Result<Stored> {
    for how in changed_files(run) {
        console::eprint_line(&format!("warning: {how}: copy the run's folder again"));
    }
    if let Some(summary) = read_file(run, file::SUMMARY, read_summary)? {
        return Ok(Stored { summary, timeline: read_file(run, file::TIMELINE, read_timeline)? });
    }
    release_of_killed(run);
    let Rebuilt { summary, record } = summarize_rows(run)?;
    Ok(Stored { summary, timeline: Some(record.timeline) })
}

/// Contents of a run's file; `None` if it is missing: older versions, and unfinished runs, lack
/// some.
fn read_file<T, E: Into<Error>>(
    run: &Path,
    name: &str,
    read: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<Option<T>> {
    let path = run.join(name);
    match plimsoll_input::read(&path) {
        Ok(bytes) => {
            if let Some(how) = changed_since(&path) {
                bail!("{} {how}: copy the run's folder again", path.display());
            }
            let found = read(&bytes).map_err(Into::into);
            found.map(Some).with_context(|| path.display().to_string())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn summarize_rows(run: &Path) -> Result<Rebuilt> {
    let rows = find_rows(run, file::ROWS).unwrap_or_else(|| run.join(file::ROWS));
    let stored = read_file(run, file::PLAN, StoredPlan::parse)?
        .with_context(|| format!("{} has neither summary.json nor plan.json", run.display()))?;
    let limits = stored.limits()?;
    let file = open_rows(&rows).with_context(|| {
        format!(
            "the run has no summary.json, and its rows cannot be read either ({})",
            rows.display()
        )
    })?;
    let mut lines = BoundedLines::new(file);
    let mut rebuilt = rebuild(lines.by_ref(), stored.metadata, &limits)?;
    rebuilt.summary = with_tasks(rebuilt.summary, run, &rows)?;
    lines.check().with_context(|| rows.display().to_string())?;
    Ok(rebuilt)
}

/// Adds the tasks of agents, if the run has any.
fn with_tasks(mut summary: RunSummary, run: &Path, rows: &Path) -> Result<RunSummary> {
    let Some(tasks) = find_rows(run, file::TASKS) else { return Ok(summary) };
    let lines = BoundedLines::new(open_rows(&tasks)?);
    let rows = BoundedLines::new(open_rows(rows)?);
    let RebuiltTasks { tally, unreadable, under_way } =
        rebuild_tasks(lines, rows, &summary.metadata);
    let note = format!(
        "{under_way} tasks were in progress when the process ended: they count as unfinished, without their steps; tasks without a first response are missing"
    );
    summary.metadata.notes.push(note);
    if unreadable > 0 {
        let note = format!("{unreadable} lines of tasks.jsonl cannot be read");
        summary.metadata.notes.push(note);
    }
    Ok(summary.with_tasks(&tally)?)
}

/// The result of a comparison; `None` for other runs.
pub(in crate::command) fn versus(run: &Path) -> Result<Option<Versus>> {
    read_file(run, file::VERSUS, plimsoll_versus::read_json)
}
