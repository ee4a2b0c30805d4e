//! `plan.json`: what was to be done, and all that a summary needs besides the rows.

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
    /// Shards of one run have the same.
    schedule_fingerprint: String,
    plan: &'a Plan,
    facts: &'a RunMetadata,
}

/// Writes the plan of a run that is about to begin. The plan itself shows no credentials.
pub(crate) fn store_plan(run_dir: &RunDir, run: &Run, facts: &RunMetadata) -> Result<()> {
    let plan = NewPlan {
        schema: SCHEMA,
        schedule_fingerprint: format!("{:016x}", run.schedule_fingerprint()),
        plan: run.plan(),
        facts,
    };
    let mut text = serde_json::to_vec_pretty(&plan)?;
    text.push(b'\n');
    run_dir.write(file::PLAN, &text)
}

/// What of a stored plan is needed to sum the run up again.
#[derive(Debug, Deserialize)]
pub(crate) struct StoredPlan {
    schema: String,
    plan: StoredIntent,
    /// Names, stages, targets, the machine.
    pub(crate) facts: RunMetadata,
}

#[derive(Debug, Deserialize)]
struct StoredIntent {
    thresholds: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    bands: BTreeMap<String, Vec<String>>,
}

impl StoredPlan {
    /// Reads `plan.json`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let plan: Self = serde_json::from_slice(bytes)
            .context("this is not a plan that this version can read")?;
        anyhow::ensure!(
            plan.schema == SCHEMA,
            "the plan's layout is `{}`, and this version reads `{SCHEMA}`: use the version of plimsoll that wrote it",
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

/// Reads thresholds as a plan writes them.
pub(crate) fn thresholds(written: &BTreeMap<String, Vec<String>>) -> Result<Vec<Threshold>> {
    each(written).map(|(metric, bound)| Ok(Threshold::parse(metric, bound)?)).collect()
}

/// Reads bands as a plan writes them.
pub(crate) fn bands(written: &BTreeMap<String, Vec<String>>) -> Result<Vec<Band>> {
    each(written).map(|(metric, bounds)| Ok(Band::parse(metric, bounds)?)).collect()
}

fn each(written: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = (&str, &str)> {
    written
        .iter()
        .flat_map(|(metric, bounds)| bounds.iter().map(move |bound| (&**metric, &**bound)))
}
