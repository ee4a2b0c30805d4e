//! The result of a join, stored as `join.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::map::LogOf;

/// Layout of `join.json`.
pub const SCHEMA: &str = "plimsoll.join/1";

/// A run matched with a log.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// Layout of the file: `plimsoll.join/1`.
    pub schema: String,
    /// Folder of the run.
    pub run: String,
    /// Id of the run from its plan.json; `None` if the folder has no such file.
    pub run_id: Option<String>,
    /// Source of the log, without credentials.
    pub log: String,
    /// Mapped columns, in the syntax of `--map`.
    pub map: String,
    /// Origin of the map.
    pub map_origin: String,
    /// Process that wrote the log.
    pub log_of: LogOf,
    /// Whether run and log agree.
    pub verdict: Verdict,
    /// Counts.
    pub books: MatchCounts,
    /// Values that differ in matched requests.
    pub disagreements: Vec<Disagreement>,
    /// Example ids of each kind.
    pub examples: Examples,
    /// Times by scenario and outcome, without warm-up.
    pub times: Vec<GroupTimes>,
    /// Cache results according to the log and the response headers; `None` if the log has no cache
    /// states.
    pub caches: Option<Caches>,
    /// Times that the target reports in its response headers, next to the log's times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedTimes>,
    /// Mean breakdown of the time of completed requests in each measured stage, over the requests
    /// for which run and log know every part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTimes>,
    /// Resolution of the log's durations in milliseconds: the uncertainty of time differences.
    pub steps_ms: Option<f64>,
    /// Reason for missing times.
    pub times_refused: Option<String>,
    /// Requests that took longer in the log than for the client.
    pub impossible: u64,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Whether run and log agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "word", content = "why")]
pub enum Verdict {
    /// No request is lost, duplicated or different.
    Agree,
    /// Some request is lost, duplicated or different.
    Disagree,
    /// The match is inconclusive.
    Unjudged(String),
}

/// Counts of requests and rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchCounts {
    /// Requests of the run, including those never sent.
    pub in_run: u64,
    /// Rows of the log.
    pub in_log: u64,
    /// Requests with at least one row.
    pub matched: u64,
    /// Answered requests without a row.
    pub lost: u64,
    /// Requests without a row that the target answered itself, so that the upstream's log need not
    /// have them.
    pub kept: u64,
    /// Requests without an answer and without a row, which may not have arrived.
    pub unanswered: u64,
    /// Requests without a row by the sent id, and without an id header of their own in the
    /// response. The log may have them under an unknown id.
    #[serde(default)]
    pub unnamed: u64,
    /// Requests without a row that were in flight at the end.
    pub in_flight: u64,
    /// Rows of requests that do not belong to this run.
    pub foreign: u64,
    /// Requests with several unexplained rows.
    pub twice: u64,
    /// Requests with several rows because of retries.
    pub retried: u64,
    /// Rows beyond the first of their request.
    pub rows_twice: u64,
    /// Matched requests with at least one different value.
    pub disagreeing: u64,
    /// Rows of requests that the run never sent.
    pub never_sent_in_log: u64,
    /// Lines of the log that are not valid rows.
    pub unreadable: u64,
}

/// A value that differs between run and log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disagreement {
    /// Name of the value.
    pub field: String,
    /// Number of requests.
    pub count: u64,
    /// Example ids.
    pub examples: Vec<String>,
}

/// Example ids of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Examples {
    /// Requests without a row.
    pub lost: Vec<String>,
    /// Requests with unexplained additional rows.
    pub twice: Vec<String>,
    /// Rows that do not belong to the run.
    pub foreign: Vec<String>,
}

/// Cache results of matched requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caches {
    /// Matched requests that are hits according to the log.
    pub hits: u64,
    /// Misses.
    pub misses: u64,
    /// Requests that bypassed the cache.
    pub bypassed: u64,
    /// Matched requests without a cache state in the log.
    pub unknown: u64,
    /// Matched requests that are a hit in either the log or the response headers, but not in both.
    /// They do not count as disagreements, because another cache may have written the header.
    pub unlike_headers: u64,
}

/// A time that the target reports in its response headers, over the matched requests of one
/// scenario and outcome, without warm-up. Plimsoll did not measure it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatedTimes {
    /// Scenario.
    pub scenario: String,
    /// Outcome.
    pub outcome: String,
    /// `server_time`, or the name of a part.
    pub name: String,
    /// Requests with such a header.
    pub requests: u64,
    /// Reported time.
    pub stated: Quantiles,
    /// The log's total of the same requests.
    pub log: Option<Quantiles>,
    /// The log's total minus its upstream time, of the same requests.
    pub gateway: Option<Quantiles>,
    /// Time the client waited, over the same requests.
    pub client: Quantiles,
}

/// Times of the requests of one scenario and outcome, optionally of one cache state.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTimes {
    /// Scenario.
    pub scenario: String,
    /// Outcome.
    pub outcome: String,
    /// `hit`, `miss` or `bypass` in the log, if the times cover these requests alone. Present in
    /// addition to the whole group if it has hits and others.
    pub cache: Option<String>,
    /// Requests with a time on both sides.
    pub requests: u64,
    /// Time the client waited, from sent to finished.
    pub client: Quantiles,
    /// Client minus log, request by request: the network, queues before the log's first clock
    /// reading, TLS. For an upstream's log: everything in front of it.
    pub outside: Quantiles,
    /// The log's total minus its upstream time.
    pub gateway: Option<Quantiles>,
    /// The log's upstream time; for an upstream's log, its total.
    pub upstream: Option<Quantiles>,
}

/// Mean breakdown of the time of a stage's completed requests. The means sum to the client's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTimes {
    /// Stage.
    pub stage: String,
    /// Completed requests of the stage in the run's rows.
    pub completed: u64,
    /// Completed requests for which every part is known. Only they count.
    pub matched: u64,
    /// Time the client waited, from sent to finished, in milliseconds.
    pub client_ms: f64,
    /// Client minus log, in milliseconds. For an upstream's log: everything in front of it.
    pub outside_ms: f64,
    /// The log's total minus its upstream time, in milliseconds; `None` for an upstream's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_ms: Option<f64>,
    /// The log's upstream time in milliseconds; for an upstream's log, its total.
    pub upstream_ms: f64,
}

/// Median and 99th percentile in milliseconds; `None` if there are too few requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "keys of a file name their unit")]
pub struct Quantiles {
    /// Median.
    pub p50_ms: Option<f64>,
    /// Lower end of the median's 95 % interval, by batches of time; `None` if unknown.
    pub p50_low_ms: Option<f64>,
    /// Upper end of the interval.
    pub p50_high_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
}
