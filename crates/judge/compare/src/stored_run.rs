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
    /// Path of the folder, as given.
    pub path: PathBuf,
    /// Summary of the run.
    pub summary: RunSummary,
    /// The plan without the parts that may differ between compared runs; `None` if there is only a
    /// summary.
    pub plan: Option<Value>,
    /// Gates of its profile.
    pub gates: Vec<(String, String)>,
}

/// The parts of `plan.json` that are read.
#[derive(Deserialize)]
struct PlanFile {
    plan: Value,
}

impl StoredRun {
    /// Reads the folder of a run, or its `summary.json` alone.
    ///
    /// # Errors
    /// Each names the file, the problem and the remedy.
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

    /// Creates a run from its parts; `plan` is the content of `plan.json`.
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

    /// Unique id of the run.
    pub fn id(&self) -> String {
        let run = &self.summary.metadata.run;
        format!("{}-{}", run.started_unix_ns, run.run_id)
    }

    /// Hash of the plan; `None` for a run of an earlier version without a plan.
    pub fn plan_hash(&self) -> Option<String> {
        let stored = &self.summary.metadata.run.plan_hash;
        if !stored.is_empty() {
            return Some(stored.clone());
        }
        self.plan.as_ref().map(plan::hash_of_comparable)
    }
}

/// The content of a file, or `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, CompareError> {
    match plimsoll_input::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(CompareError::Unreadable { path: path.to_owned(), error }),
    }
}

/// The error for a folder without a summary.
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
