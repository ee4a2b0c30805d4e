//! Input of the pages.

use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline};
use plimsoll_report::screen::Screen;
use plimsoll_versus::Versus;

/// Input of a run's page.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Results of the run.
    pub summary: &'a RunSummary,
    /// Results over time; `None` for a run of an earlier version.
    pub timeline: Option<&'a RunTimeline>,
    /// Single requests; `None` for a run of an earlier version.
    pub exemplars: Option<&'a RunExemplars>,
    /// The comparison, if targets were compared.
    pub versus: Option<&'a Versus>,
    /// Times of single requests from a gateway's own log, after a `join`.
    pub server: &'a [ServerParts],
}

/// Breakdown of a request's time, from its last byte sent to the end of its response, according to
/// a gateway's own log. Only durations are known, not their position within that time.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerParts {
    /// Id of the request.
    pub request_id: String,
    /// Time outside the log: network, queues before its first clock reading, TLS.
    pub outside_ms: f64,
    /// Time in the gateway itself.
    pub gateway_ms: Option<f64>,
    /// Time in its upstream.
    pub upstream_ms: Option<f64>,
}

/// Input of a suite's page. A separate type, because the suite's crate can generate load, which a
/// page does not need.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// Name of the suite.
    pub name: &'a str,
    /// Its result.
    pub screen: &'a Screen,
    /// Targets compared by pairs of requests, with the name of each comparison.
    pub comparisons: Vec<(&'a str, &'a Versus)>,
}
