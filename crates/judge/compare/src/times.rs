//! Times of the compared runs, stored so that a page can draw them without the run folders.

use plimsoll_metrics::{DistributionSummary, Metric};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stored_run::StoredRun;

/// Times of all requests of each run, without warm-up, in the headline figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Figure, such as `response_time_ms`.
    pub metric: String,
    /// Times of each old run; `null` if it has none.
    pub base: Vec<Option<DistributionSummary>>,
    /// Times of each new run.
    pub new: Vec<Option<DistributionSummary>>,
}

impl Times {
    /// Collects the times of comparable runs; `None` if no run has any.
    pub(crate) fn of(base: &[StoredRun], new: &[StoredRun]) -> Option<Self> {
        let metric: Metric = base.first()?.summary.metadata.headline_time();
        let [base, new] = [base, new].map(|runs| {
            runs.iter()
                .map(|run| run.summary.results.total.distribution(metric).cloned())
                .collect::<Vec<_>>()
        });
        let times = Self { metric: metric.key().to_owned(), base, new };
        let any = times.base.iter().chain(&times.new).any(Option::is_some);
        any.then_some(times)
    }
}
