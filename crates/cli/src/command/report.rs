//! `plimsoll report`: prints the report of a stored run.

use std::fs;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_metrics::{RunSummary, RunTimeline};
use plimsoll_report::{
    BoundedLines, Rebuilt, csv, json, prometheus, read_json, read_timeline, rebuild, text,
    timeline_json,
};
use plimsoll_versus::Versus;

use super::versus::WIDTH;
use crate::console;
use crate::exit::{Exit, UsageError};
use crate::run_dir::{FILE_WIDTH, StoredPlan, file, release_of_killed};

const AFTER: &str = "\
Examples:
  plimsoll report runs/20260102T030405Z-realistic
  plimsoll report runs/20260102T030405Z-realistic --format csv > run.csv

A run that was killed has no summary.json. Its report is then computed from plan.json and results.jsonl, as far as the rows go, and is marked invalid.

Exit code: 0 if the report could be printed, whatever its result; 3 if the run did not finish, so that it is computed from the rows, or if it could not be printed.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folder of the run
    #[arg(value_hint = ValueHint::DirPath)]
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
    let Stored { summary, timeline } = read(&flags.run)?;
    if flags.html {
        let (timeline, versus) = (timeline.as_ref(), versus(&flags.run)?);
        let input = plimsoll_page::Input { summary: &summary, timeline, versus: versus.as_ref() };
        console::print(&plimsoll_page::page(&input))?;
        return Ok(Exit::of_report(&summary));
    }
    let report = match flags.format {
        Format::Text => text(&summary, console::full_style(FILE_WIDTH)),
        Format::Json => json(&summary)?,
        Format::Csv => csv(&summary)?,
        Format::Prometheus => prometheus(&summary),
        Format::Timeline => timeline_json(&timeline.ok_or_else(no_timeline)?)?,
    };
    if let (Format::Text, Some(versus)) = (flags.format, versus(&flags.run)?) {
        let width = console::full_style(WIDTH).width;
        console::print_line(&plimsoll_versus::text(&versus, width))?;
    }
    console::print(&report)?;
    Ok(Exit::of_report(&summary))
}

/// The result of a comparison; `None` for other runs.
fn versus(run: &Path) -> Result<Option<Versus>> {
    let path = run.join(file::VERSUS);
    let Ok(bytes) = fs::read(&path) else { return Ok(None) };
    let versus = plimsoll_versus::read_json(&bytes).with_context(|| path.display().to_string())?;
    Ok(Some(versus))
}

/// What a folder says of its run.
struct Stored {
    summary: RunSummary,
    /// `None` for a run of an earlier version.
    timeline: Option<RunTimeline>,
}

fn no_timeline() -> UsageError {
    UsageError("the run has no timeline.json: an earlier version of plimsoll made it".to_owned())
}

/// The stored results, or those computed from the rows.
fn read(run: &Path) -> Result<Stored> {
    let path = run.join(file::SUMMARY);
    match fs::read(&path) {
        Ok(bytes) => {
            let summary = read_json(&bytes).with_context(|| path.display().to_string())?;
            Ok(Stored { summary, timeline: stored_timeline(run)? })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            release_of_killed(run);
            let Rebuilt { summary, record } = summarize_rows(run)?;
            Ok(Stored { summary, timeline: Some(record.timeline) })
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn stored_timeline(run: &Path) -> Result<Option<RunTimeline>> {
    let path = run.join(file::TIMELINE);
    match fs::read(&path) {
        Ok(bytes) => read_timeline(&bytes).map(Some).with_context(|| path.display().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn summarize_rows(run: &Path) -> Result<Rebuilt> {
    let (plan, rows) = (run.join(file::PLAN), run.join(file::ROWS));
    let Ok(bytes) = fs::read(&plan) else {
        let cause = "is not the folder of a run: it has neither summary.json nor plan.json";
        return Err(UsageError(format!(
            "{} {cause}; give the folder that `plimsoll run` printed after `files:`",
            run.display()
        ))
        .into());
    };
    let stored = StoredPlan::parse(&bytes).with_context(|| plan.display().to_string())?;
    let thresholds = stored.thresholds()?;
    let file = fs::File::open(&rows).with_context(|| {
        format!(
            "the run has no summary.json, and its rows cannot be read either ({})",
            rows.display()
        )
    })?;
    let mut lines = BoundedLines::new(BufReader::new(file));
    let bands = stored.bands()?;
    let mut rebuilt = rebuild(lines.by_ref(), stored.metadata, &thresholds)?;
    rebuilt.summary = rebuilt.summary.with_bands(&bands);
    lines.check().with_context(|| rows.display().to_string())?;
    Ok(rebuilt)
}
