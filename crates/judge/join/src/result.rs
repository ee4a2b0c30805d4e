//! The result of a join, as `join.json` holds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::map::LogOf;

/// Layout of `join.json`.
pub const SCHEMA: &str = "plimsoll.join/1";

/// A run matched with a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// Layout of the file: `plimsoll.join/1`.
    pub schema: String,
    /// The folder of the run.
    pub run: String,
    /// The run's id, as its plan.json has it; `None` where the folder has no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Where the log came from, without credentials.
    pub log: String,
    /// The columns that were used, as `--map` takes them.
    pub map: String,
    /// Where the map came from.
    pub map_origin: String,
    /// Whose log it is.
    pub log_of: LogOf,
    /// Whether run and log agree.
    pub verdict: Verdict,
    /// Counts.
    pub books: Books,
    /// What matched requests do not agree in.
    pub disagreements: Vec<Disagreement>,
    /// Some ids of each kind.
    pub examples: Examples,
    /// Times by scenario and outcome, without warm-up.
    pub times: Vec<GroupTimes>,
    /// What caches did by the log and by the headers of the answers; `None` where the log says
    /// nothing of caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<Caches>,
    /// What the target states of its own time in the headers of its answers, beside the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedTimes>,
    /// Where the time of completed requests went in each measured stage, on average; only those of
    /// which run and log know every part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTimes>,
    /// The steps of the log's lengths in milliseconds: differences of times are known within them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_ms: Option<f64>,
    /// Why there are no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_refused: Option<String>,
    /// Requests that took the log's side longer than the client waited.
    pub impossible: u64,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// Whether run and log agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "word", content = "why")]
pub enum Verdict {
    /// Nothing is lost, twice or disagreeing.
    Agree,
    /// Something is.
    Disagree,
    /// It cannot be judged.
    Unjudged(String),
}

/// Counts of requests and rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Books {
    /// Requests of the run, those that were never sent included.
    pub in_run: u64,
    /// Rows of the log.
    pub in_log: u64,
    /// Requests with at least one row.
    pub matched: u64,
    /// Requests with an answer and without a row.
    pub lost: u64,
    /// Requests that the target answered by itself, and that a log behind it need not have.
    pub kept: u64,
    /// Requests without an answer and without a row: they may not have arrived.
    pub unanswered: u64,
    /// Requests whose answer does not have an id header of its own, and without a row by the id
    /// that was sent: the log may have them by an id that nobody knows.
    #[serde(default)]
    pub unnamed: u64,
    /// Requests in flight at the end and without a row.
    pub in_flight: u64,
    /// Rows of requests that are not of this run.
    pub foreign: u64,
    /// Requests with more than one row that nothing explains.
    pub twice: u64,
    /// Requests with more than one row, because they were sent or tried again.
    pub retried: u64,
    /// Rows beyond the first of their request.
    pub rows_twice: u64,
    /// Matched requests that differ in at least one value.
    pub disagreeing: u64,
    /// Requests that the run never sent, and that the log has.
    pub never_sent_in_log: u64,
    /// Lines of the log that are no rows.
    pub unreadable: u64,
}

/// Values that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disagreement {
    /// What differs.
    pub field: String,
    /// Requests.
    pub count: u64,
    /// Some of them.
    pub examples: Vec<String>,
}

/// Some ids of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Examples {
    /// Of requests that the log does not have.
    pub lost: Vec<String>,
    /// Of requests that it has more than once.
    pub twice: Vec<String>,
    /// Of rows that are not of the run.
    pub foreign: Vec<String>,
}

/// What caches did, in matched requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caches {
    /// Matched requests that the log calls a hit.
    pub hits: u64,
    /// A miss.
    pub misses: u64,
    /// Not asked of a cache.
    pub bypassed: u64,
    /// Matched requests of which the log says nothing.
    pub unknown: u64,
    /// Matched requests that are a hit by the log and not by the headers of their answers, or the
    /// other way round. They break no books: another cache may have written the header.
    pub unlike_headers: u64,
}

/// A time that the target states in the headers of its answers, over the matched requests of one
/// scenario and outcome, without warm-up. Nobody measured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatedTimes {
    /// Scenario.
    pub scenario: String,
    /// Outcome.
    pub outcome: String,
    /// `server_time`, or the name of a part.
    pub name: String,
    /// Requests that state it.
    pub requests: u64,
    /// What they state.
    pub stated: Quantiles,
    /// The log's total of the same requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Quantiles>,
    /// The log's total minus its upstream time, of the same requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Quantiles>,
    /// What the client waited, of the same requests.
    pub client: Quantiles,
}

/// Times of the requests of one scenario and outcome, or of those of them with one cache state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTimes {
    /// Scenario.
    pub scenario: String,
    /// Outcome.
    pub outcome: String,
    /// `hit`, `miss` or `bypass` by the log: of these requests alone. Present where a group has
    /// hits and others, beside the times of the whole group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// Requests with a time on both sides.
    pub requests: u64,
    /// What the client waited, from sent to finished.
    pub client: Quantiles,
    /// Client minus log, request by request: the network, queues before the log's first clock
    /// reading, TLS. For a log behind the target: all that is in front of it.
    pub outside: Quantiles,
    /// The log's total minus its upstream time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Quantiles>,
    /// The log's upstream time; of a log behind the target, its total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Quantiles>,
}

/// Where the time of the completed requests of a stage went: means, which add up to what the client
/// waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTimes {
    /// Stage.
    pub stage: String,
    /// Its completed requests, of those that the run's rows have.
    pub completed: u64,
    /// Those of them with every part: only these count.
    pub matched: u64,
    /// What the client waited, from sent to finished, in milliseconds.
    pub client_ms: f64,
    /// Client minus log, in milliseconds. For a log behind the target: all that is in front of it.
    pub outside_ms: f64,
    /// The log's total minus its upstream time, in milliseconds; `None` of a log behind the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_ms: Option<f64>,
    /// The log's upstream time in milliseconds; of a log behind the target, its total.
    pub upstream_ms: f64,
}

/// Median and 99th percentile in milliseconds; `None` with too few requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "keys of a file name their unit")]
pub struct Quantiles {
    /// Median.
    pub p50_ms: Option<f64>,
    /// Its 95 % interval, by batches of time: the lower end. `None` where it cannot be given.
    pub p50_low_ms: Option<f64>,
    /// The upper end.
    pub p50_high_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
}
