//! `plan.json`: the plan of a run, and all that a summary needs besides the rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plimsoll_engine::Run;
use plimsoll_measure::Moment;
use plimsoll_metrics::{Limit, RunMetadata};
use plimsoll_plan::Plan;
use serde::{Deserialize, Serialize};

use super::{RunDir, file, replace};
use crate::error::RunnerError;

/// Version of the layout of `plan.json`.
const SCHEMA: &str = "plimsoll.plan/1";

#[derive(Serialize)]
struct NewPlan<'a> {
    schema: &'static str,
    /// The same for all shards of one run.
    schedule_fingerprint: String,
    plan: &'a Plan,
    metadata: &'a RunMetadata,
}

impl RunDir {
    /// Writes the plan of a run that is about to begin. It contains no credentials.
    pub(crate) fn store_plan(&self, run: &Run, metadata: &RunMetadata) -> Result<(), RunnerError> {
        let plan = NewPlan {
            schema: SCHEMA,
            schedule_fingerprint: format!("{:016x}", run.schedule_fingerprint()),
            plan: run.plan(),
            metadata,
        };
        let mut text = serde_json::to_vec_pretty(&plan)?;
        text.push(b'\n');
        self.write(file::PLAN, &text)
    }
}

/// Notes in the plan of a folder when its load began: the rows of a run that is killed count from
/// there.
pub(crate) fn note_start(folder: &Path, origin: Moment) -> Result<(), RunnerError> {
    let path = folder.join(file::PLAN);
    let plan = fs::read_to_string(&path).map_err(|source| RunnerError::Read { path, source })?;
    let began_s = origin.since(Moment::EPOCH).as_secs_f64();
    let plan = plan.replacen("{\n", &format!("{{\n  \"began_s\": {began_s},\n"), 1);
    replace(folder, file::PLAN, plan.as_bytes())
}

/// The part of a stored plan that is needed to compute the summary again.
#[derive(Debug, Deserialize)]
pub struct StoredPlan {
    schema: String,
    /// When the load began, after the start of the run's clock; 0 where it is not known.
    #[serde(default)]
    began_s: f64,
    plan: StoredBounds,
    /// Names, stages, targets, the machine.
    pub metadata: RunMetadata,
}

#[derive(Debug, Deserialize)]
struct StoredBounds {
    thresholds: BTreeMap<String, Vec<String>>,
}

impl StoredPlan {
    /// Reads `plan.json`.
    ///
    /// # Errors
    /// It is not a plan of this version.
    pub fn parse(bytes: &[u8]) -> Result<Self, RunnerError> {
        let mut plan: Self = serde_json::from_slice(bytes).map_err(|error| {
            RunnerError::StoredPlan(format!(
                "this is not a plan.json that this version of plimsoll can read: {error}"
            ))
        })?;
        if plan.schema != SCHEMA {
            return Err(RunnerError::StoredPlan(format!(
                "its schema is `{}`, but this version reads `{SCHEMA}`; use the version of plimsoll that wrote it",
                plan.schema
            )));
        }
        for stage in &mut plan.metadata.stages {
            stage.start_s += plan.began_s;
        }
        Ok(plan)
    }

    /// The limits of the run.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn limits(&self) -> Result<Vec<Limit>, RunnerError> {
        limits(&self.plan.thresholds)
    }
}

/// Parses the limits of a plan.
///
/// # Errors
/// One of them cannot be read: it says which and why.
pub fn limits(written: &BTreeMap<String, Vec<String>>) -> Result<Vec<Limit>, RunnerError> {
    let written = written.iter().flat_map(|(metric, all)| all.iter().map(move |one| (metric, one)));
    written.map(|(metric, limit)| Ok(Limit::parse(metric, limit)?)).collect()
}
