//! `plimsoll merge`: adds the shards of a run up to one result.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result};
use clap::{Args, ValueHint};
use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_merge::{Judges, MergeError, Merged, Shard, ShardSet, merge_rows};
use plimsoll_metrics::{RunSummary, ShardState, TimeRecord};
use plimsoll_report::format::utc_compact;
use plimsoll_report::screen::Rest;
use plimsoll_run_files::{RowFormat, RowWriter, ShardStatus};
use plimsoll_runner::ComparedShards;
use plimsoll_runner::facts::take_over;
use plimsoll_runner::folder::{RunDir, RunDirOptions, StoredPlan, file};
use plimsoll_versus::{Facts, Versus, judge};
use plimsoll_why::why;
use serde_json::Value;

use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{OutputFlags, ScreenFlags, parse_share};
use crate::run_result::{RunResult, parse_thresholds, rest};

const AFTER: &str = include_str!("merge.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folders of shards, or folders that contain them
    #[arg(required = true, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// The run has N shards: refuse shards of another run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    expect: Option<u64>,
    /// Take only shards that were started with this --launch
    #[arg(long, value_name = "ID")]
    launch: Option<String>,
    /// Judge the result although shards are missing, up to this share of the load, like `1%`
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    lost_at_most: f64,
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
    let asked = Asked {
        expect: flags.expect,
        launch: flags.launch.as_deref(),
        lost_at_most: flags.lost_at_most,
    };
    let mut whole = merge(&flags.folders, asked, Some(&options))?;
    whole.print(flags.screen.show(), None)?;
    whole.check_written()?;
    Ok(whole.result().exit(flags.allow_invalid))
}

/// Request for a merge.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    /// Shards of the run, if that is known.
    pub(crate) expect: Option<u64>,
    /// The launch of the shards, if only one counts.
    pub(crate) launch: Option<&'a str>,
    /// The part of the load that may be missing.
    pub(crate) lost_at_most: f64,
}

/// All shards together.
pub(crate) struct Whole {
    /// The run.
    pub(crate) summary: RunSummary,
    record: TimeRecord,
    /// Result of the comparison, if the run compared targets.
    versus: Option<Versus>,
    /// Its folder, if it has one.
    pub(crate) folder: Option<PathBuf>,
    /// Why the requested result could not be written.
    unwritten: Option<Error>,
}

impl Whole {
    /// Whether its folder was written, if it was to have one. To be asked when it has been printed:
    /// a full disk must not lose the result.
    ///
    /// # Errors
    /// It was not.
    pub(crate) fn check_written(&mut self) -> Result<()> {
        let error = self.unwritten.take();
        let fix = "the shards are unchanged: merge them again when there is space, or with --out";
        error.map_or(Ok(()), |error| Err(error.context(fix)))
    }

    /// Location of the details that a screen leaves out.
    pub(crate) fn rest(&self) -> Rest {
        rest(self.folder.as_deref())
    }

    /// The merged result.
    pub(crate) fn result(&self) -> RunResult<'_> {
        RunResult { summary: &self.summary, versus: self.versus.as_ref() }
    }

    /// Prints the result.
    pub(crate) fn print(&self, show: Show, junit: Option<&Path>) -> Result<()> {
        let result = self.result();
        let screen = result.screen(self.rest());
        result.print(&screen, show)?;
        console::write_junit(junit, &screen)
    }
}

/// Merges shards, and writes the folder of the whole if it is to have one.
pub(crate) fn merge(
    folders: &[PathBuf],
    asked: Asked<'_>,
    options: Option<&RunDirOptions>,
) -> Result<Whole> {
    let shards = shards_in(folders)?;
    let set = ShardSet::new(shards, asked.expect, asked.launch).map_err(merge_error)?;
    let mut document = set.plan_document();
    let stored = StoredPlan::parse(&serde_json::to_vec(&document)?)?;
    let limits = stored.limits()?;
    let judges = Judges { limits: &limits, lost_at_most: asked.lost_at_most };
    let mut merged = set.merge(judges).map_err(merge_error)?;
    let hash = plan_hash(document.get("plan").unwrap_or(&Value::Null));
    merged.summary.metadata.run.plan_hash = hash;
    merged.summary.bottleneck = why(&merged.summary).bottleneck();
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
    let Merged { summary, record } = merged;
    let versus = versus.transpose()?;
    let mut whole = Whole { summary, record, versus, folder: None, unwritten: None };
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
    take_over(summary, &mut versus);
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
        let run = &self.summary.metadata.run;
        let mut folder = RunDir::create(options, &utc_compact(run.started_unix_ns), &run.name)?;
        folder.write(file::PLAN, (serde_json::to_string_pretty(document)? + "\n").as_bytes())?;
        if let Some(format) = options.rows {
            for name in [file::ROWS, file::TASKS] {
                store_rows(set, name, folder.path(), format)?;
            }
        }
        pairs.map_or(Ok(()), |pairs| pairs.store(&folder))?;
        self.result().write(&folder, &self.record)?;
        let (shard, state) = ("0/1".to_owned(), ShardState::Done);
        folder.commit(&ShardStatus { shard, state, ..ShardStatus::default() })?;
        folder.keep();
        Ok(folder)
    }
}

/// Writes the rows of all shards; a file without any is left out.
fn store_rows(set: &ShardSet, name: &str, folder: &Path, format: RowFormat) -> Result<()> {
    let path = format.path(folder, name);
    let context = || console::cannot_write(&path);
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
/// shards and hold a plan.
fn shards_in(folders: &[PathBuf]) -> Result<Vec<Shard>> {
    let mut shards = Vec::new();
    for folder in folders {
        let mut inside = Vec::new();
        if !folder.join(file::PLAN).exists() {
            for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
                inside.push(entry.map_err(|error| unreadable(folder, error))?.path());
            }
            inside.retain(|path| is_shard(path));
            inside.sort();
        }
        if inside.is_empty() {
            inside.push(folder.clone());
        }
        shards.extend(inside);
    }
    shards.iter().map(|folder| Shard::read(folder).map_err(merge_error)).collect()
}

fn is_shard(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.starts_with("shard-")) && path.join(file::PLAN).exists()
}

/// Why a folder contains no shards. A missing folder is a usage error.
fn unreadable(folder: &Path, error: io::Error) -> Error {
    let name = folder.display();
    if error.kind() != ErrorKind::NotFound {
        return Error::from(error).context(format!("cannot read {name}"));
    }
    UsageError(format!(
        "no folder {name}: give the folder of a run, which contains shard-00000-of-..., or the folders of its shards"
    ))
    .into()
}

/// Shards that do not belong together are wrong usage.
fn merge_error(error: MergeError) -> Error {
    match error {
        MergeError::NotAShard { .. }
        | MergeError::Nothing
        | MergeError::Mixed { .. }
        | MergeError::Twice { .. }
        | MergeError::Expected { .. } => UsageError(error.to_string()).into(),
        error => error.into(),
    }
}
