//! `plan.json`: the plan of a run, and all that a summary needs besides the rows.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use plimsoll_engine::Run;
use plimsoll_metrics::{Band, RunMetadata, Threshold};
use plimsoll_profile::Plan;
use serde::{Deserialize, Serialize};

use super::{RunDir, file};

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

/// Writes the plan of a run that is about to begin. It contains no credentials.
pub(crate) fn store_plan(run_dir: &RunDir, run: &Run, metadata: &RunMetadata) -> Result<()> {
    let plan = NewPlan {
        schema: SCHEMA,
        schedule_fingerprint: format!("{:016x}", run.schedule_fingerprint()),
        plan: run.plan(),
        metadata,
    };
    let mut text = serde_json::to_vec_pretty(&plan)?;
    text.push(b'\n');
    run_dir.write(file::PLAN, &text)
}

/// The part of a stored plan that is needed to compute the summary again.
#[derive(Debug, Deserialize)]
pub(crate) struct StoredPlan {
    schema: String,
    plan: StoredBounds,
    /// Names, stages, targets, the machine.
    #[serde(alias = "facts")]
    pub(crate) metadata: RunMetadata,
}

#[derive(Debug, Deserialize)]
struct StoredBounds {
    thresholds: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    bands: BTreeMap<String, Vec<String>>,
}

impl StoredPlan {
    /// Reads `plan.json`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let plan: Self = serde_json::from_slice(bytes)
            .context("this is not a plan.json that this version of plimsoll can read")?;
        anyhow::ensure!(
            plan.schema == SCHEMA,
            "its schema is `{}`, but this version reads `{SCHEMA}`; use the version of plimsoll that wrote it",
            plan.schema
        );
        Ok(plan)
    }

    /// The thresholds of the run.
    pub(crate) fn thresholds(&self) -> Result<Vec<Threshold>> {
        thresholds(&self.plan.thresholds)
    }

    /// The bands of the run.
    pub(crate) fn bands(&self) -> Result<Vec<Band>> {
        bands(&self.plan.bands)
    }
}

/// Parses the thresholds of a plan.
pub(crate) fn thresholds(written: &BTreeMap<String, Vec<String>>) -> Result<Vec<Threshold>> {
    pairs(written).map(|(metric, bound)| Ok(Threshold::parse(metric, bound)?)).collect()
}

/// Parses the bands of a plan.
pub(crate) fn bands(written: &BTreeMap<String, Vec<String>>) -> Result<Vec<Band>> {
    pairs(written).map(|(metric, bounds)| Ok(Band::parse(metric, bounds)?)).collect()
}

fn pairs(written: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = (&str, &str)> {
    written
        .iter()
        .flat_map(|(metric, bounds)| bounds.iter().map(move |bound| (&**metric, &**bound)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_version_0_1_0_is_read() {
        let path = "../load/report/tests/fixtures/run-0.1.0/plan.json";
        let stored = StoredPlan::parse(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(stored.metadata.run.tool_version, "0.1.0");
        assert!(stored.thresholds().is_ok() && stored.bands().is_ok());
    }
}
