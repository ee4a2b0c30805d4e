//! What the files of a run say of it.

use std::fs;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use anyhow::{Context as _, Result};
use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline};
use plimsoll_report::{BoundedLines, Rebuilt, read_exemplars, read_json, read_timeline, rebuild};
use plimsoll_versus::Versus;

use crate::run_dir::{StoredPlan, file, release_of_killed};

/// What a folder says of its run.
pub(super) struct Stored {
    pub(super) summary: RunSummary,
    /// `None` for a run of an earlier version.
    pub(super) timeline: Option<RunTimeline>,
}

/// The stored results, or those computed from the rows.
pub(super) fn read(run: &Path) -> Result<Stored> {
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
    let bytes = fs::read(&plan).with_context(|| format!("cannot read {}", plan.display()))?;
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

/// Single requests with all their times; `None` for a run of an earlier version, or one that did
/// not finish.
pub(super) fn exemplars(run: &Path) -> Result<Option<RunExemplars>> {
    let path = run.join(file::EXEMPLARS);
    let Ok(bytes) = fs::read(&path) else { return Ok(None) };
    read_exemplars(&bytes).map(Some).with_context(|| path.display().to_string())
}

/// The result of a comparison; `None` for other runs.
pub(super) fn versus(run: &Path) -> Result<Option<Versus>> {
    let path = run.join(file::VERSUS);
    let Ok(bytes) = fs::read(&path) else { return Ok(None) };
    let versus = plimsoll_versus::read_json(&bytes).with_context(|| path.display().to_string())?;
    Ok(Some(versus))
}
