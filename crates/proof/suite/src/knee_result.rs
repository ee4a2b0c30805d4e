//! The knee of a target with one kind of request, as a search found it.

use plimsoll_knee::{Found, Goodput, Kind};
use plimsoll_report::format::digits;
use serde::{Deserialize, Serialize};

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeResult {
    /// Its name in the report, with the target where there are several.
    pub label: String,
    /// The objective of a request, and the share of requests that must meet it.
    pub objective: String,
    /// Seconds that it could take, its confirmation included.
    pub budget_s: f64,
    /// The highest rate that keeps the objective, per second.
    pub knee: Found,
    /// The rate of requests that kept it, as measured next to the knee.
    pub goodput: Option<Goodput>,
    /// File with every probe, relative to the folder of `suite.json`.
    pub file: String,
}

impl KneeResult {
    /// The knee as tables show it.
    pub(crate) fn cell(&self) -> String {
        self.knee.cell(digits)
    }

    /// A rate that it surely carries, where the search found one that it does not.
    pub(crate) fn carried(&self) -> Option<f64> {
        let is_limit = matches!(self.knee.kind, Kind::Interval | Kind::Bracket);
        self.knee.low.filter(|_| is_limit)
    }
}
