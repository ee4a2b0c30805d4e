//! What a page is made from.

use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline};
use plimsoll_report::screen::Screen;
use plimsoll_versus::Versus;

/// What the page of a run is about.
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
    /// What a gateway's own log tells of single requests, after a `join`.
    pub server: &'a [ServerParts],
}

/// Where the time of a request went, from its last byte sent to the end of its response, as a
/// gateway's own log tells it. Only lengths are known, and not where in that time they lie.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerParts {
    /// The id of the request.
    pub request_id: String,
    /// What the log does not see: network, queues before its first clock reading, TLS.
    pub outside_ms: f64,
    /// In the gateway itself.
    pub gateway_ms: Option<f64>,
    /// In its upstream.
    pub upstream_ms: Option<f64>,
}

/// What the page of a suite is about. The crate that makes it carries a load, which a page need not
/// know.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// Name of the suite.
    pub name: &'a str,
    /// Its result.
    pub screen: &'a Screen,
    /// Targets that were compared by pairs of requests, each with its name.
    pub comparisons: Vec<(&'a str, &'a Versus)>,
}
