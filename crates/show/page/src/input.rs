//! What a page is made from.

use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline};
use plimsoll_report::table::Table;
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

/// How a sentence or a verdict is to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As expected.
    Good,
    /// For information.
    #[default]
    Note,
    /// To look into, or a limit to what the figures show.
    Warning,
    /// Broken.
    Bad,
}

/// A table under its title.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Title.
    pub title: &'a str,
    /// The table; it may be empty.
    pub table: &'a Table,
    /// Notes below the table.
    pub notes: &'a [String],
}

/// What the page of a suite is about: the parts of its report, in the report's own words. The crate
/// that makes them carries a load, which a page need not know.
#[derive(Clone, Debug, Default)]
pub struct Suite<'a> {
    /// Name of the suite.
    pub name: &'a str,
    /// Its subject, in a line.
    pub title: &'a str,
    /// The verdict: how it is to be taken, and its sentence, which begins with its word.
    pub verdict: (Tone, String),
    /// Why it neither passes nor fails.
    pub doubts: Vec<String>,
    /// What stands above all figures, like that the build is a debug build.
    pub remarks: Vec<String>,
    /// Sentences that follow from the figures.
    pub findings: Vec<(Tone, &'a str)>,
    /// The judged bounds: title, table and why some could not be judged.
    pub bounds: Option<(String, Table, Vec<String>)>,
    /// Targets that were compared by pairs of requests, each with its name.
    pub comparisons: Vec<(&'a str, &'a Versus)>,
    /// The tables.
    pub sections: Vec<Section<'a>>,
    /// Parts that were left out, and why.
    pub left_out: &'a [String],
    /// The machine, and what was measured on it.
    pub environment: Vec<(String, String)>,
    /// What the marks in tables mean.
    pub marks: &'a str,
    /// The command line that repeats it.
    pub command: &'a str,
}
