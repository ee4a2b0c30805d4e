//! What a search found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kept::{Counts, KeptShare, State};

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The lowest load.
    Floor,
    /// A step up.
    Bracket,
    /// A bisection.
    Narrow,
    /// An end of a bracket once more.
    Cliff,
    /// One side of the best guess.
    Estimate,
    /// The lower end, for long.
    Confirm,
}

/// Figures of a probe for the reader. The search does not look at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeFigures {
    /// Median of the objective's first time, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Its p99.
    pub p99_ms: Option<f64>,
    /// Requests that kept the objective, per second.
    pub goodput: Option<f64>,
    /// Mean number of requests in flight.
    pub in_flight: Option<f64>,
    /// Output tokens per second.
    pub tokens_per_s: Option<f64>,
}

/// A probe that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Requests per second, or virtual users.
    pub load: f64,
    /// Length of the part that counts, in seconds.
    pub seconds: f64,
    /// What it was for.
    pub phase: Phase,
    /// Requests that missed the objective.
    pub missed: u64,
    /// Of these, the ones that may be the generator's fault.
    pub doubtful: u64,
    /// All requests that were due.
    pub requests: u64,
    /// The share that kept it; `null` without a request.
    pub kept: Option<KeptShare>,
    /// What it shows.
    pub state: State,
    /// Why it shows nothing, if the generator is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Why it ended before its time, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Seconds that it took, with warm-up, drain and rest.
    pub took_s: f64,
    /// Further figures.
    pub figures: ProbeFigures,
}

impl Probe {
    pub(crate) const fn counts(&self) -> Counts {
        Counts { missed: self.missed, doubtful: self.doubtful, all: self.requests }
    }
}

/// How well the knee is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A load with its 95 % interval.
    Interval,
    /// Between a load that keeps the objective and one that misses it.
    Bracket,
    /// At least this load: nothing higher could be judged.
    AtLeast,
    /// Not even the lowest load keeps the objective.
    NotEven,
    /// It was found, but no load below it kept the objective for long.
    Unstable,
    /// Nothing can be told.
    Unknown,
}

/// The knee: the highest load that keeps the objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// How well it is known.
    pub kind: Kind,
    /// The load.
    pub load: Option<f64>,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Why it is not known better, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The confirmation, if it was made and kept the objective.
    pub confirmed: Option<Confirmed>,
}

/// A long probe that kept the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmed {
    /// Its load.
    pub load: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// The share of requests that kept the objective.
    pub kept: KeptShare,
}
