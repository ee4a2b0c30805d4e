//! `plimsoll merge`: adds the shards of a run up to one result.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_merge::{Judges, MergeError, Merged, Shard, ShardSet, merge_rows};
use plimsoll_metrics::{RunExemplars, RunSummary, TimeRecord};
use plimsoll_page as page;
use plimsoll_report::format::utc_compact;
use plimsoll_report::screen::Rest;
use plimsoll_report::{prometheus, run_screen, text};
use plimsoll_run_files::{RowFormat, RowWriter, summary_json};
use plimsoll_runner::ComparedShards;
use plimsoll_runner::facts::take_over;
use plimsoll_runner::folder::{RunDir, RunDirOptions, StoredPlan, file};
use plimsoll_versus::{Facts, Versus, judge, screen as versus_screen};
use plimsoll_why::why;
use serde_json::Value;

use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{OutputFlags, ScreenFlags};
use crate::run_reports::{FILE_WIDTH, PLAIN, RunReports};
use crate::versus_result::{Judged, parse_thresholds};

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
    /// Take only shards that were started with this --launch
    #[arg(long, value_name = "ID")]
    launch: Option<String>,
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
    let mut whole = merge(&flags.folders, flags.expect, flags.launch.as_deref(), Some(&options))?;
    whole.print(flags.screen.show())?;
    whole.check_written()?;
    Ok(whole.exit(flags.allow_invalid))
}

/// All shards together.
pub(crate) struct Whole {
    /// The run.
    pub(crate) summary: RunSummary,
    record: TimeRecord,
    exemplars: Option<RunExemplars>,
    /// What came of it, where it compared targets.
    versus: Option<Versus>,
    /// Its folder, if it has one.
    pub(crate) folder: Option<PathBuf>,
    /// Why it has none, although it was to have one.
    unwritten: Option<anyhow::Error>,
}

impl Whole {
    /// Whether its folder was written, if it was to have one. To be asked when it has been printed:
    /// a full disk must not lose the result.
    ///
    /// # Errors
    /// It was not.
    pub(crate) fn check_written(&mut self) -> Result<()> {
        let error = self.unwritten.take();
        let fix =
            "the shards are as they were: merge them again when there is space, or with --out";
        error.map_or(Ok(()), |error| Err(error.context(fix)))
    }

    /// Where a reader finds what a screen leaves out.
    pub(crate) fn rest(&self) -> Rest {
        let path = self.folder.as_ref().map(|folder| folder.display().to_string());
        path.map_or(Rest::Flag, Rest::Folder)
    }

    /// Prints the result.
    pub(crate) fn print(&self, show: Show) -> Result<()> {
        let summary = &self.summary;
        if let Some(judged) = self.judged() {
            return judged.print(&versus_screen(judged.versus, summary, self.rest()), show);
        }
        match show {
            Show::Screen => console::print_screen(&run_screen(summary, self.rest()))?,
            Show::Full => console::print(&text(summary, console::full_style(FILE_WIDTH)))?,
            Show::Json => console::print(&summary_json(summary)?)?,
            Show::Nothing => {}
        }
        Ok(())
    }

    /// The exit code.
    pub(crate) fn exit(&self, allow_invalid: bool) -> Exit {
        self.judged().map_or_else(
            || Exit::of_run(&self.summary, allow_invalid),
            |judged: Judged<'_>| judged.exit(allow_invalid),
        )
    }

    /// Its figures in the format of Prometheus.
    pub(crate) fn figures(&self) -> String {
        self.judged().map_or_else(|| prometheus(&self.summary), |judged| judged.figures())
    }

    /// The comparison, if it is one.
    fn judged(&self) -> Option<Judged<'_>> {
        let (summary, record) = (&self.summary, &self.record);
        let exemplars = self.exemplars.as_ref();
        self.versus.as_ref().map(|versus| Judged { versus, summary, record, exemplars })
    }
}

/// Merges shards, and writes the folder of the whole if it is to have one.
pub(crate) fn merge(
    folders: &[PathBuf],
    expect: Option<u64>,
    launch: Option<&str>,
    options: Option<&RunDirOptions>,
) -> Result<Whole> {
    let shards = shards_in(folders)?;
    let set = ShardSet::new(shards, expect, launch).map_err(merge_error)?;
    let mut document = set.plan_document();
    let stored = StoredPlan::parse(&serde_json::to_vec(&document)?)?;
    let (thresholds, bands) = (stored.thresholds()?, stored.bands()?);
    let judges = Judges { thresholds: &thresholds, bands: &bands };
    let mut merged = set.merge(judges).map_err(merge_error)?;
    let hash = plan_hash(document.get("plan").unwrap_or(&Value::Null));
    merged.summary.metadata.run.plan_hash = hash;
    merged.summary.bottleneck = Some(why(&merged.summary).bottleneck());
    if let Some(plan) = document.as_object_mut() {
        // The start of one shard, by its own clock.
        plan.remove("began_s");
    }
    if let Some(metadata) = document.get_mut("metadata") {
        *metadata = serde_json::to_value(&merged.summary.metadata)?;
    }
    let shards = set.shards().iter();
    let whole = shards.filter(|shard| shard.is_whole(file::PAIRS) && shard.is_whole(file::FACTS));
    let shards = ComparedShards::read(whole.map(Shard::folder));
    let versus = shards.as_ref().map(|shards| compare(shards, &merged.summary, &document));
    let Merged { summary, record, exemplars } = merged;
    let versus = versus.transpose()?;
    let mut whole = Whole { summary, record, exemplars, versus, folder: None, unwritten: None };
    let pairs = shards.as_ref();
    match options.map(|options| whole.store(&set, &document, pairs, options)) {
        Some(Ok(folder)) => whole.folder = Some(folder.path().to_owned()),
        Some(Err(error)) => whole.unwritten = Some(error),
        None => {}
    }
    Ok(whole)
}

/// Judges the pairs of all shards.
fn compare(shards: &ComparedShards, summary: &RunSummary, document: &Value) -> Result<Versus> {
    let bounds = document.pointer("/plan/versus/thresholds").cloned().unwrap_or(Value::Null);
    let bounds: Option<BTreeMap<String, Vec<String>>> = serde_json::from_value(bounds)?;
    let thresholds = parse_thresholds(&bounds.unwrap_or_default())?;
    let facts = Facts { thresholds, ..shards.facts(summary) };
    let mut versus = judge(&facts, &shards.pairs.blocks);
    take_over(&summary.validity, &mut versus);
    for what in &shards.damaged {
        versus.invalidate(format!("{what}: the pairs of this shard are missing"));
    }
    Ok(versus)
}

impl Whole {
    /// Writes the files of a run.
    fn store(
        &self,
        set: &ShardSet,
        document: &Value,
        pairs: Option<&ComparedShards>,
        options: &RunDirOptions,
    ) -> Result<RunDir> {
        let Self { summary, record, .. } = self;
        let run = &summary.metadata.run;
        let mut folder = RunDir::create(options, &utc_compact(run.started_unix_ns), &run.name)?;
        folder.write(file::PLAN, (serde_json::to_string_pretty(document)? + "\n").as_bytes())?;
        if let Some(format) = options.rows {
            for name in [file::ROWS, file::TASKS] {
                store_rows(set, name, folder.path(), format)?;
            }
        }
        pairs.map_or(Ok(()), |pairs| pairs.store(&folder))?;
        if let Some(judged) = self.judged() {
            judged.write(&folder)?;
        } else {
            let (timeline, exemplars) = (Some(&record.timeline), self.exemplars.as_ref());
            let page = page::Input { summary, timeline, exemplars, versus: None, server: &[] };
            RunReports { page, record, text: text(summary, PLAIN) }.write(&folder)?;
        }
        folder.keep();
        Ok(folder)
    }
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
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let name = folder.display();
            let why = format!(
                "there is no folder {name}; give the folder of a run, which holds shard-00000-of-..., or those of its shards"
            );
            return Err(UsageError(why).into());
        }
        entries => entries.with_context(context)?,
    };
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
