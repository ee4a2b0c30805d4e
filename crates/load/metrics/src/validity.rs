//! Judges whether Plimsoll kept up, so that the figures describe the target.
//!
//! The bounds and their reasons are in `docs/statistics.md`, under "When a run is invalid".

mod bounds;
mod violations;
mod warnings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounting::Accounting;
use crate::health::{InstrumentHealth, Lag};
use crate::run_metadata::RunEnd;

/// A broken bound, or a limit of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What is out of bounds.
    pub what: String,
    /// Its measured value.
    pub measured: String,
    /// The bound that it broke.
    pub bound: String,
    /// What to do about it.
    #[serde(alias = "mend")]
    pub fix: String,
}

/// The validity of a run, and the limits of its measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Whether the figures may be used.
    pub validity: Validity,
    /// Limits that a reader must know, even if the run is valid.
    pub warnings: Vec<Reason>,
}

/// Whether the figures describe the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", content = "reasons", rename_all = "snake_case")]
pub enum Validity {
    /// No bound was broken.
    Valid,
    /// These bounds were broken.
    Invalid(Vec<Reason>),
}

impl Validity {
    /// Whether no bound was broken.
    pub const fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }
}

/// Input of the judgement besides the instrument's health.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// How the run ended.
    pub ended: RunEnd,
    /// Cells whose accounting identity does not hold, by name.
    pub unbalanced: Vec<(String, Accounting)>,
    /// Requests that were planned, warm-up included.
    pub scheduled: Option<u64>,
    /// Whether any stage follows the open model.
    pub open_model: bool,
    /// Median service time of completed requests, in milliseconds.
    pub service_time_p50_ms: Option<f64>,
    /// The measured stages of the closed model.
    pub closed: Vec<ClosedStage>,
}

/// A stage of the closed model, with the time of its virtual users in the generator and in the
/// target.
#[derive(Clone, Debug, Default)]
pub struct ClosedStage {
    /// Its name.
    pub name: String,
    /// Its length, in seconds.
    pub duration_s: f64,
    /// Share of its requests without a response at the end of the run.
    pub unfinished: f64,
    /// Time from the end of one request to the dispatch of the next: the generator's.
    pub generator: Lag,
    /// Service time of completed requests: the target's.
    pub target: Lag,
}

/// Judges whether the instrument kept up. A run without a completed request may be valid; its
/// thresholds are inconclusive.
pub fn judge_health(health: &InstrumentHealth, evidence: &Evidence) -> Assessment {
    let reasons = violations::violations(health, evidence);
    let validity = if reasons.is_empty() { Validity::Valid } else { Validity::Invalid(reasons) };
    Assessment { validity, warnings: warnings::warnings(health, evidence) }
}

#[cfg(test)]
mod tests;
