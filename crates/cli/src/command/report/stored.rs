//! Stored files of a run.

use std::collections::HashSet;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use anyhow::{Context as _, Error, Result, bail};
use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline};
use plimsoll_page::ServerParts;
use plimsoll_run_files::{
    BoundedLines, Rebuilt, RebuiltTasks, changed_files, changed_since, find_rows, open_rows,
    read_exemplars, read_summary, read_timeline, rebuild, rebuild_tasks,
};
use plimsoll_runner::folder::{StoredPlan, file, release_of_killed};
use plimsoll_versus::Versus;
use serde::Deserialize;

use crate::console;

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
        "{under_way} tasks were under way when the process ended: they are unfinished, without \
         their steps; those whose first request had no answer yet are not known"
    );
    summary.metadata.notes.push(note);
    if unreadable > 0 {
        let note = format!("{unreadable} lines of tasks.jsonl cannot be read");
        summary.metadata.notes.push(note);
    }
    Ok(summary.with_tasks(&tally)?)
}

/// Single requests with all their times.
pub(in crate::command) fn exemplars(run: &Path) -> Result<Option<RunExemplars>> {
    read_file(run, file::EXEMPLARS, read_exemplars)
}

/// The result of a comparison; `None` for other runs.
pub(in crate::command) fn versus(run: &Path) -> Result<Option<Versus>> {
    read_file(run, file::VERSUS, plimsoll_versus::read_json)
}

/// Gateway log data of the kept requests, from a `join`; empty without one.
pub(super) fn server_parts(run: &Path, exemplars: &RunExemplars) -> Result<Vec<ServerParts>> {
    /// The members of a line that are needed.
    #[derive(Deserialize)]
    struct Joined {
        request_id: String,
        outside_ms: Option<f64>,
        gateway_ms: Option<f64>,
        upstream_ms: Option<f64>,
    }
    let path = run.join(file::JOINED);
    let Ok(joined) = plimsoll_input::open(&path) else { return Ok(Vec::new()) };
    let kept: HashSet<_> = exemplars.requests.iter().map(|request| &request.request_id).collect();
    let mut lines = BoundedLines::new(BufReader::new(joined));
    let mut parts = Vec::new();
    for line in lines.by_ref() {
        let row: Joined =
            serde_json::from_slice(&line).with_context(|| path.display().to_string())?;
        let Joined { request_id, outside_ms, gateway_ms, upstream_ms } = row;
        if let Some(outside_ms) = outside_ms.filter(|_| kept.contains(&request_id)) {
            parts.push(ServerParts { request_id, outside_ms, gateway_ms, upstream_ms });
        }
    }
    lines.check().with_context(|| path.display().to_string())?;
    Ok(parts)
}
