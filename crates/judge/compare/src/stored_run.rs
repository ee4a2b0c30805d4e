//! A stored run: its summary and its plan.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plimsoll_metrics::RunSummary;
use plimsoll_run_files::read_summary;
use serde::Deserialize;
use serde_json::Value;

use crate::error::CompareError;
use crate::plan;

/// A stored run.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Its folder, as given.
    pub path: PathBuf,
    /// Its summary.
    pub summary: RunSummary,
    /// The plan without what may differ between runs that are compared; `None` if there is only a
    /// summary.
    pub plan: Option<Value>,
    /// The gates of its profile.
    pub gates: Vec<(String, String)>,
}

/// The part of `plan.json` that is read.
#[derive(Deserialize)]
struct PlanFile {
    plan: Value,
}

impl StoredRun {
    /// Reads the folder of a run, or its `summary.json` alone.
    ///
    /// # Errors
    /// Each says which file, what is wrong with it, and what to do.
    pub fn read(path: &Path) -> Result<Self, CompareError> {
        let is_file = path.is_file();
        let folder = if is_file { path.parent().unwrap_or(path) } else { path };
        let summary_path = if is_file { path.to_owned() } else { folder.join("summary.json") };
        let plan_path = folder.join("plan.json");
        let Some(bytes) = read(&summary_path)? else {
            return Err(missing(path, &plan_path));
        };
        let summary = read_summary(&bytes)
            .map_err(|error| CompareError::Summary { path: summary_path, error })?;
        let plan = read(&plan_path)?.map(|bytes| serde_json::from_slice::<PlanFile>(&bytes));
        let plan =
            plan.transpose().map_err(|error| CompareError::Plan { path: plan_path, error })?;
        Ok(Self::new(path.to_owned(), summary, plan.map(|file| file.plan)))
    }

    /// From its parts; `plan` is that of `plan.json`.
    pub fn new(path: PathBuf, summary: RunSummary, plan: Option<Value>) -> Self {
        let gates = plan.as_ref().and_then(|plan| plan.get("gate")?.as_object().cloned());
        let gates = gates.into_iter().flatten();
        let gates = gates.filter_map(|(name, margin)| Some((name, margin.as_str()?.to_owned())));
        Self {
            path,
            summary,
            gates: gates.collect(),
            plan: plan.map(|plan| plan::comparable(&plan)),
        }
    }

    /// What tells it from every other run.
    pub fn id(&self) -> String {
        let run = &self.summary.metadata.run;
        format!("{}-{}", run.started_unix_ns, run.run_id)
    }

    /// The hash of what was sent and when; `None` for a run of an earlier version without a plan.
    pub fn plan_hash(&self) -> Option<String> {
        let stored = &self.summary.metadata.run.plan_hash;
        if !stored.is_empty() {
            return Some(stored.clone());
        }
        self.plan.as_ref().map(plan::hash_of_comparable)
    }
}

/// The content of a file, or `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, CompareError> {
    match plimsoll_input::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(CompareError::Unreadable { path: path.to_owned(), error }),
    }
}

/// What a folder without a summary is.
fn missing(path: &Path, plan: &Path) -> CompareError {
    if path.join("suite.json").exists() {
        CompareError::Suite(path.to_owned())
    } else if path.join("comparison.json").exists() {
        CompareError::IsComparison(path.to_owned())
    } else if plan.exists() {
        CompareError::Killed(path.to_owned())
    } else {
        CompareError::NotARun(path.to_owned())
    }
}
