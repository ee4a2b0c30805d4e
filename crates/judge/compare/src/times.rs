//! The times of the compared runs, so that a page can draw them without the folders of the runs.

use plimsoll_metrics::{DistributionSummary, Metric};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stored_run::StoredRun;

/// The times of all requests of each run, without warm-up, in the figure that heads its report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// The figure, like `response_time_ms`.
    pub metric: String,
    /// Of each old run; `null` if it has none.
    pub base: Vec<Option<DistributionSummary>>,
    /// Of each new run.
    pub new: Vec<Option<DistributionSummary>>,
}

impl Times {
    /// Those of runs that may be compared; `None` if no run has any.
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
