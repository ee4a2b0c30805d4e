//! `plimsoll merge`: adds the shards of a run up to one result.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_merge::{Judges, MergeError, Merged, Shard, ShardSet, merge_rows};
use plimsoll_metrics::RunSummary;
use plimsoll_page as page;
use plimsoll_report::format::utc_compact;
use plimsoll_report::screen::Rest;
use plimsoll_report::{run_screen, text};
use plimsoll_run_files::{RowFormat, RowWriter, summary_json};
use plimsoll_runner::folder::{RunDir, RunDirOptions, StoredPlan, file};
use plimsoll_why::why;
use serde_json::Value;

use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{OutputFlags, ScreenFlags};
use crate::run_reports::{FILE_WIDTH, PLAIN, RunReports};

const AFTER: &str = "\
Examples:
  plimsoll merge runs/nightly-42                  all shards in a folder
  plimsoll merge a/shard-00000-of-00002 b/shard-00001-of-00002 --expect 2

Counters and histograms are added as whole numbers, bucket by bucket: a percentile of the result is that of all requests together, and nothing is averaged. The new folder has the files of a run; report, compare, why and join take it like any other.

Shards of different runs are refused: another seed, run id, version, plan, schedule or number of shards, or a shard twice. A shard that is missing, was cut off or came too late makes the result INVALID, and thresholds are not judged: what is known is shown, and is not the planned load. Merging again when its files turn up is safe.

Exit codes: 0 pass, 1 a threshold failed, 2 wrong usage or shards that do not belong together, 3 the result is invalid or inconclusive.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folders of shards, or folders that hold them
    #[arg(required = true, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// The run has N shards: refuse shards of another run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    expect: Option<u64>,
    /// Exit 0 or 1 by the thresholds even if the result is invalid
    #[arg(long)]
    allow_invalid: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    screen: ScreenFlags,
}

/// Merges the shards, prints the result and writes its folder.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let options = flags.output.options();
    let whole = merge(&flags.folders, flags.expect, Some(&options))?;
    whole.print(flags.screen.show())?;
    Ok(Exit::of_run(&whole.summary, flags.allow_invalid))
}

/// All shards together.
pub(crate) struct Whole {
    /// The run.
    pub(crate) summary: RunSummary,
    /// Its folder, if it has one.
    pub(crate) folder: Option<PathBuf>,
}

impl Whole {
    /// Where a reader finds what a screen leaves out.
    pub(crate) fn rest(&self) -> Rest {
        let path = self.folder.as_ref().map(|folder| folder.display().to_string());
        path.map_or(Rest::Flag, Rest::Folder)
    }

    /// Prints the result.
    pub(crate) fn print(&self, show: Show) -> Result<()> {
        let summary = &self.summary;
        match show {
            Show::Screen => console::print_screen(&run_screen(summary, self.rest()))?,
            Show::Full => console::print(&text(summary, console::full_style(FILE_WIDTH)))?,
            Show::Json => console::print(&summary_json(summary)?)?,
            Show::Nothing => {}
        }
        Ok(())
    }
}

/// Merges shards, and writes the folder of the whole if it is to have one.
pub(crate) fn merge(
    folders: &[PathBuf],
    expect: Option<u64>,
    options: Option<&RunDirOptions>,
) -> Result<Whole> {
    let shards = shards_in(folders)?;
    let set = ShardSet::new(shards, expect).map_err(merge_error)?;
    let mut document = set.plan_document();
    let stored = StoredPlan::parse(&serde_json::to_vec(&document)?)?;
    let (thresholds, bands) = (stored.thresholds()?, stored.bands()?);
    let judges = Judges { thresholds: &thresholds, bands: &bands };
    let mut merged = set.merge(judges).map_err(merge_error)?;
    let hash = plan_hash(document.get("plan").unwrap_or(&Value::Null));
    merged.summary.metadata.run.plan_hash = hash;
    merged.summary.bottleneck = Some(why(&merged.summary).bottleneck());
    if let Some(metadata) = document.get_mut("metadata") {
        *metadata = serde_json::to_value(&merged.summary.metadata)?;
    }
    let folder = options.map(|options| store(&set, &merged, &document, options)).transpose()?;
    let folder = folder.map(|folder| folder.path().to_owned());
    Ok(Whole { summary: merged.summary, folder })
}

/// Writes the files of a run.
fn store(
    set: &ShardSet,
    merged: &Merged,
    document: &Value,
    options: &RunDirOptions,
) -> Result<RunDir> {
    let Merged { summary, record, exemplars } = merged;
    let run = &summary.metadata.run;
    let mut folder = RunDir::create(options, &utc_compact(run.started_unix_ns), &run.name)?;
    folder.write(file::PLAN, (serde_json::to_string_pretty(document)? + "\n").as_bytes())?;
    if let Some(format) = options.rows {
        for name in [file::ROWS, file::TASKS] {
            store_rows(set, name, folder.path(), format)?;
        }
    }
    let timeline = Some(&record.timeline);
    let page =
        page::Input { summary, timeline, exemplars: exemplars.as_ref(), versus: None, server: &[] };
    RunReports { page, record, text: text(summary, PLAIN) }.write(&folder)?;
    folder.keep();
    Ok(folder)
}

/// Writes the rows of all shards; a file without any is left out.
fn store_rows(set: &ShardSet, name: &str, folder: &Path, format: RowFormat) -> Result<()> {
    let path = format.path(folder, name);
    let context = || format!("cannot write {}", path.display());
    let file = RowWriter::create(&path, format).with_context(context)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let rows = merge_rows(set, name, &mut out).map_err(merge_error)?;
    out.flush().with_context(context)?;
    if rows == 0 {
        fs::remove_file(&path).with_context(context)?;
    }
    Ok(())
}

/// The shards in these folders: of each the folder itself, or those in it that are named like
/// shards.
fn shards_in(folders: &[PathBuf]) -> Result<Vec<Shard>> {
    let mut shards = Vec::new();
    for folder in folders {
        let inside = if folder.join(file::PLAN).exists() { Vec::new() } else { named(folder)? };
        if inside.is_empty() {
            shards.push(Shard::read(folder).map_err(merge_error)?);
        }
        for shard in inside {
            shards.push(Shard::read(&shard).map_err(merge_error)?);
        }
    }
    Ok(shards)
}

/// The folders in a folder that are named `shard-KKKKK-of-NNNNN` and hold a plan.
fn named(folder: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("cannot read {}", folder.display());
    let entries = fs::read_dir(folder).with_context(context)?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(context)?.path();
        let is_shard =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("shard-"));
        if is_shard && path.join(file::PLAN).exists() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Shards that do not belong together are wrong usage.
fn merge_error(error: MergeError) -> anyhow::Error {
    match error {
        MergeError::NotAShard { .. }
        | MergeError::Nothing
        | MergeError::Mixed { .. }
        | MergeError::Twice { .. }
        | MergeError::Expected { .. } => UsageError(error.to_string()).into(),
        error => error.into(),
    }
}
