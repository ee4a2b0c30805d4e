//! Judges whether Plimsoll kept up, so that the figures describe the target.
//!
//! The rules are in `docs/statistics.md`, under "When a run is invalid", and their reasons in
//! `docs/adr/0007-judged-by-effect.md`.

mod bounds;
mod causes;
mod headline;
mod violations;
mod warnings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::{Counters, Metric};
use crate::health::InstrumentHealth;
use crate::results::Results;
use crate::run_metadata::RunEnd;

pub(crate) use bounds::percent;
pub use causes::causes;

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
    pub fix: String,
    /// What may have held the generator up meanwhile, if that was the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// The name of the headline figure that the generator falsified, if that is the reason. What is
    /// wrong with it need not be wrong with a difference of two targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
}

impl Reason {
    /// Whether it is about a time alone: the load itself was the planned one, and its other figures
    /// can be used.
    pub fn is_of_a_time(&self) -> bool {
        self.figure.as_ref().is_some_and(|name| Metric::ALL.iter().any(|time| time.name() == name))
    }
}

/// The validity of a run, and the limits of its measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Whether the figures may be used.
    pub validity: Validity,
    /// Limits that a reader must know, even if the run is valid.
    pub warnings: Vec<Reason>,
}

/// Whether the load was the planned one, and something is known of its headline figures.
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
    pub unbalanced: Vec<(String, Counters)>,
    /// Requests that were planned, warm-up included.
    pub scheduled: Option<u64>,
    /// How often the requests of each measured stage opened a connection.
    pub openings: Vec<StageOpenings>,
    /// Names of the stages of the closed model.
    pub closed: Vec<String>,
}

/// How often the requests of a measured stage opened a connection.
#[derive(Clone, Debug, Default)]
pub struct StageOpenings {
    /// Name of the stage.
    pub name: String,
    /// Requests that were dispatched.
    pub requests: u64,
    /// Of these, the ones that opened a connection.
    pub opened: u64,
    /// Requests that failed, timed out or were given up: each may have ended its connection.
    pub cut_off: u64,
    /// Requests that were answered: only they have a service time.
    pub answered: u64,
    /// Connections that the stage needs at least: its virtual users, in the closed model.
    pub needed: f64,
    /// The most requests in flight at once: so many connections are open then, if each has one.
    pub peak: u64,
}

impl StageOpenings {
    fn share(&self) -> f64 {
        self.opened as f64 / self.requests.max(1) as f64
    }
}

/// Judges whether the instrument kept up. A run without a completed request may be valid; its
/// thresholds are inconclusive.
pub fn judge_health(
    health: &InstrumentHealth,
    evidence: &Evidence,
    results: &Results,
) -> Assessment {
    let mut reasons = violations::violations(health, evidence);
    reasons.extend(headline::violations(results, evidence, &causes(health)));
    let validity = if reasons.is_empty() { Validity::Valid } else { Validity::Invalid(reasons) };
    Assessment { validity, warnings: warnings::warnings(health, evidence) }
}

#[cfg(test)]
mod tests;
