//! Was the instrument good enough for the run?
//!
//! The bounds and their reasons are in `docs/statistics.md`, under "When a run is invalid".

mod rules;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounting::Accounting;
use crate::facts::RunEnd;
use crate::health::{InstrumentHealth, Lag};

/// Why a run is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What is out of bounds.
    pub what: String,
    /// Its measured value.
    pub measured: String,
    /// The bound that it broke.
    pub bound: String,
    /// What to do about it.
    pub mend: String,
}

/// What the judge says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// May the numbers be used?
    pub validity: Validity,
    /// What a reader must know of them all the same.
    pub warnings: Vec<Reason>,
}

/// Whether the numbers describe the target, or the instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", content = "reasons", rename_all = "snake_case")]
pub enum Validity {
    /// No bound was broken.
    Valid,
    /// These were.
    Invalid(Vec<Reason>),
}

impl Validity {
    /// Is it valid?
    pub const fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }
}

/// What besides the health the judge looks at.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// How the run ended.
    pub ended: RunEnd,
    /// Cells whose accounting does not add up, by their names.
    pub unbalanced: Vec<(String, Accounting)>,
    /// Requests that were planned, warm-up included.
    pub scheduled: Option<u64>,
    /// Does any stage follow the open model?
    pub open_model: bool,
    /// Median service time of completed requests, in milliseconds.
    pub service_time_p50_ms: Option<f64>,
    /// Median gap between content events, in milliseconds; `None` without streams.
    pub gap_p50_ms: Option<f64>,
    /// Gaps between content events that were measured, of all streams.
    pub gaps: u64,
    /// Content events that came in one read with the one before them: gaps that were not measured.
    pub events_together: u64,
    /// Of these, the ones of reads that were late.
    pub events_together_late: u64,
    /// The measured stages of the closed model.
    pub closed: Vec<ClosedStage>,
}

/// A stage of the closed model: how the time of its virtual users was divided between the generator and
/// the target.
#[derive(Clone, Debug, Default)]
pub struct ClosedStage {
    /// Its name.
    pub name: String,
    /// How long it lasted, in seconds.
    pub duration_s: f64,
    /// Share of its requests that were unanswered at the end of the run.
    pub unfinished: f64,
    /// From the end of one request to the dispatch of the next: the generator's time.
    pub generator: Lag,
    /// Service time of completed requests: the target's.
    pub target: Lag,
}

/// Judges whether the instrument was good enough. That no request completed is not its fault: the
/// thresholds of such a run are inconclusive instead.
pub fn judge_health(health: &InstrumentHealth, evidence: &Evidence) -> Assessment {
    let reasons = rules::violations(health, evidence);
    let validity = if reasons.is_empty() { Validity::Valid } else { Validity::Invalid(reasons) };
    Assessment { validity, warnings: rules::warnings(health, evidence) }
}

#[cfg(test)]
mod tests;
