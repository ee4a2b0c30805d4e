//! What a page is made from.

use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline};
use plimsoll_versus::Versus;

/// What the page is about.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The results.
    pub summary: &'a RunSummary,
    /// What happened when; `None` for a run of an earlier version.
    pub timeline: Option<&'a RunTimeline>,
    /// Single requests; `None` for a run of an earlier version.
    pub exemplars: Option<&'a RunExemplars>,
    /// The comparison, where targets were compared.
    pub versus: Option<&'a Versus>,
}
