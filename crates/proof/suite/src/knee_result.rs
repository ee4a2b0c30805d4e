//! The knee of a target with one kind of request, as a search found it.

use plimsoll_knee::{Found, Goodput};
use plimsoll_report::format::digits;
use serde::{Deserialize, Serialize};

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeResult {
    /// Its name in the report, with the target where there are several.
    pub label: String,
    /// The objective of a request, and the share of requests that must meet it.
    pub objective: String,
    /// Seconds that the search could take.
    pub budget_s: f64,
    /// The highest rate that keeps the objective, per second.
    pub knee: Found,
    /// Why an end is open, if so.
    #[serde(default)]
    pub open: Vec<String>,
    /// The rate of requests that kept it, as measured at the highest load that was kept.
    pub goodput: Option<Goodput>,
    /// File with every probe, relative to the folder of `suite.json`.
    pub file: String,
}

impl KneeResult {
    /// The capacity as tables show it.
    pub(crate) fn cell(&self) -> String {
        self.knee.text(digits)
    }

    /// A rate within the target's capacity, where the search also found one beyond it.
    pub(crate) fn carried(&self) -> Option<f64> {
        self.knee.low.filter(|_| self.knee.high.is_some())
    }
}
