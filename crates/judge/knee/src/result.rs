//! What a search found.

use plimsoll_measure::named_enum;
use plimsoll_report::format::digits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kept::{Counts, KeptShare, State};

named_enum! {
    /// What the load is counted in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Load {
        /// Arrivals per second, independent of the target.
        RequestsPerSecond => "requests_per_second",
        /// Virtual users, each of which waits for its response.
        VirtualUsers => "virtual_users",
    }
}

impl Load {
    /// A load with its unit.
    pub fn text(self, load: f64) -> String {
        match self {
            Self::RequestsPerSecond => format!("{}/s", digits(load)),
            Self::VirtualUsers if load < 1.5 => "1 user".to_owned(),
            Self::VirtualUsers => format!("{load:.0} users"),
        }
    }
}

named_enum! {
    /// What a probe is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Phase {
        /// The lowest load.
        Floor => "floor",
        /// A step up.
        Bracket => "bracket",
        /// A bisection.
        Narrow => "narrow",
        /// An end of a bracket once more.
        Cliff => "cliff",
        /// One side of the best guess.
        Estimate => "estimate",
        /// The lower end, for long.
        Confirm => "confirm",
    }
}

/// Figures of a probe for the reader. The search does not look at them. Those that the generator
/// itself may have changed are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeFigures {
    /// Requests that were due, per second.
    #[serde(default)]
    pub offered_per_s: Option<f64>,
    /// Good answers per second.
    #[serde(default)]
    pub throughput_per_s: Option<f64>,
    /// Requests that kept the objective, per second.
    pub goodput_per_s: Option<f64>,
    /// Mean number of requests in flight.
    pub in_flight: Option<f64>,
    /// Median of the objective's first time, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Its p99.
    pub p99_ms: Option<f64>,
    /// Median response time, in milliseconds.
    #[serde(default)]
    pub response_time_p50_ms: Option<f64>,
    /// Its p99.
    #[serde(default)]
    pub response_time_p99_ms: Option<f64>,
    /// Median time to the first token, in milliseconds.
    #[serde(default)]
    pub ttft_p50_ms: Option<f64>,
    /// Its p99.
    #[serde(default)]
    pub ttft_p99_ms: Option<f64>,
    /// Output tokens per second, of all requests together.
    pub tokens_per_s: Option<f64>,
    /// Interactivity: tokens per second that one user sees, 1 / median time per output token.
    #[serde(default)]
    pub tokens_per_s_per_user: Option<f64>,
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

named_enum! {
    /// How well the knee is known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// A load with its 95 % interval.
        Interval => "interval",
        /// Between a load that keeps the objective and one that misses it.
        Bracket => "bracket",
        /// At least this load: nothing higher could be judged.
        AtLeast => "at_least",
        /// Not even the lowest load keeps the objective.
        NotEven => "not_even",
        /// It was found, but no load below it kept the objective for long.
        Unstable => "unstable",
        /// Nothing can be told.
        Unknown => "unknown",
    }
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

impl Found {
    /// The knee in a cell of a table: `1,750 [1,710, 1,790]`, `1,500 .. 1,600`, `>= 500`, `< 10`.
    pub fn cell(&self, text: impl Fn(f64) -> String) -> String {
        let [low, high, load] =
            [self.low, self.high, self.load].map(|load| load.map_or_else(|| "-".to_owned(), &text));
        match self.kind {
            Kind::Interval => format!("{load} [{low}, {high}]"),
            Kind::Bracket => format!("{low} .. {high}"),
            Kind::AtLeast => format!(">= {low}"),
            Kind::NotEven => format!("< {high}"),
            Kind::Unstable => "not stable".to_owned(),
            Kind::Unknown => "-".to_owned(),
        }
    }

    /// Nothing, as no probe was made.
    pub(crate) fn unknown() -> Self {
        let why = Some("the search ended before a probe".to_owned());
        Self { kind: Kind::Unknown, load: None, low: None, high: None, why, confirmed: None }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_words_of_files() {
        let word = |json: Result<serde_json::Value, _>| json.unwrap().as_str().unwrap().to_owned();
        for load in [Load::RequestsPerSecond, Load::VirtualUsers] {
            assert_eq!(word(serde_json::to_value(load)), load.name());
        }
        let ends = [Phase::Floor, Phase::Bracket, Phase::Narrow, Phase::Cliff];
        for phase in ends.into_iter().chain([Phase::Estimate, Phase::Confirm]) {
            assert_eq!(word(serde_json::to_value(phase)), phase.name());
        }
        let known = [Kind::Interval, Kind::Bracket, Kind::AtLeast];
        for kind in known.into_iter().chain([Kind::NotEven, Kind::Unstable, Kind::Unknown]) {
            assert_eq!(word(serde_json::to_value(kind)), kind.name());
        }
    }
}
