//! Run metadata: names, stages, targets and machine of a run, all but its measurements.

use std::collections::BTreeMap;

use plimsoll_measure::{IdSeed, PolicyDecision, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::environment::Environment;

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// All stages ran to their end.
    Complete,
    /// The user ended it early; the report covers the time until then.
    Interrupted,
    /// Too many requests got no good answer (`abort_on_error_rate`), or none did for 10 seconds;
    /// the report covers the time until then.
    TooManyErrors,
    /// A comparison that was to end as soon as it is decided (`versus.decide`), or a sweep whose
    /// throughput no longer grew; the report covers the time until then.
    Decided,
    /// Plimsoll gave up.
    Aborted,
    /// Not known, because the process left no summary. So in a plan, and in a rebuilt summary.
    #[default]
    Unfinished,
}

/// The run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// Name.
    pub name: String,
    /// Version of the tool.
    pub tool_version: String,
    /// Build profile and features of the tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// What tells it from other runs with the same seed; `--run-id` reproduces the ids of its
    /// requests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run_id: String,
    /// Of a shard: the launch that started it, as its launcher named it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub launch: String,
    /// Hash of what it sends and when: the same for runs that may be compared, whatever their
    /// target, key, seed and names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plan_hash: String,
    /// The part of the run that this process carried, `k/n` with k from 0.
    pub shard: String,
    /// Wall-clock time of the run clock's epoch, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How it ended.
    pub ended: RunEnd,
    /// Why it ended before its plan, where `ended` does not say it: a budget, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Probe requests before the load, which are not counted.
    #[serde(default)]
    pub probes: u32,
}

impl RunInfo {
    /// The seed of the ids of its conversations.
    pub fn id_seed(&self) -> IdSeed {
        IdSeed::new(Seed(self.seed), &self.run_id)
    }
}

/// The load model: the rule that decides when a request starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadModel {
    /// The schedule alone.
    Open,
    /// The completion of the previous request.
    #[default]
    Closed,
}

/// A stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageInfo {
    /// Name: its notation, like `@100:60s`, made unique in the run.
    pub name: String,
    /// Open or closed.
    pub model: LoadModel,
    /// Recorded apart, and left out of every total and threshold.
    pub warmup: bool,
    /// Start, in seconds since the epoch of the run's clock.
    pub start_s: f64,
    /// Time in which new requests were started, in seconds: planned in a plan, actual in a summary.
    /// Where a number of requests ended the load of virtual users, it lasts until the last answer.
    pub duration_s: f64,
    /// Open model: arrivals that its schedule plans, those of all shards; left out where the
    /// number of requests is limited, or targets are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<u64>,
    /// Closed model: virtual users, on average over the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<f64>,
    /// Most requests in flight at once, if watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_in_flight: Option<u64>,
    /// Mean number of requests in flight over the stage, if watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_in_flight: Option<f64>,
}

/// A target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetInfo {
    /// Name in reports.
    pub name: String,
    /// Base URL, without credentials.
    pub url: String,
    /// Model asked for; empty for plain HTTP.
    pub model: String,
    /// Of a comparison: whether it reaches the upstream without the gateway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// The target's `Server` header, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What it said when requests to it did not complete: the first message of the most frequent
    /// kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Connections by address, where the target's name has several addresses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, u64>,
    /// Connections by what their TLS handshakes agreed on, like `TLS 1.3, ALPN h2`; empty without
    /// TLS.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls: BTreeMap<String, u64>,
}

/// The expectation of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// The expected policy decision on its turns, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub policy_decision: Option<PolicyDecision>,
    /// Label by which scenarios are grouped, like `sql_injection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
}

/// Everything that a summary needs besides the measurements. Stored in `plan.json` before the load
/// starts, so that a summary can be rebuilt from `results.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of a plan, as they are stored"
)]
pub struct RunMetadata {
    /// The run.
    pub run: RunInfo,
    /// Its stages, in the order of their ids.
    pub stages: Vec<StageInfo>,
    /// Names of its scenarios, in the order of their ids.
    pub scenarios: Vec<String>,
    /// Expectations of the scenarios, in the same order; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Names of the scenarios whose requests no cache should be able to answer: every prompt is
    /// unique (`cache_mode: bust`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_busting: Vec<String>,
    /// Labels of the run, for systems that collect the figures of many runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The number of measured requests after which the load ends, if that is limited, of all
    /// shards together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
    /// Whether most requests may fail (`allow_failures`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failures: bool,
    /// What makes a request a good one, if the profile states it: `ttft<500ms & tpot<50ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<String>,
    /// Names of the parts of their time that targets state in headers, in the order of their
    /// numbers: the first 8 that
    /// came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_parts: Vec<String>,
    /// Its targets, in the order of their ids.
    pub targets: Vec<TargetInfo>,
    /// Input tokens that the load asks for, if every scenario states the same length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens_asked: Option<f64>,
    /// Output tokens that the load asks for, if every scenario sets the same limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_asked: Option<f64>,
    /// Whether the load forbids that responses end before their limit (`ignore_eos`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignores_eos: bool,
    /// Whether no two prompts begin alike: unique prompts of one turn without a system prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique_prompts: bool,
    /// Whether certificates of `https` targets are not verified (`--insecure`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Why requests did not complete, the most frequent kind first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureKind>,
    /// The machine.
    pub environment: Environment,
    /// The members of files of prompts that were not sent: `image_url (1) of prompts.jsonl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsent: Vec<String>,
    /// What was done to the input before it was sent, and what the probe found.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Requests that did not complete for the same reason, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureKind {
    /// An error class, `status N` of a refusal, or `usage` for token counts that cannot be true.
    pub kind: String,
    /// Their number.
    pub count: u64,
    /// The first message of each target that gave one.
    pub messages: BTreeMap<String, String>,
}

impl RunMetadata {
    /// The time that heads reports (`docs/adr/0007`): the service time if all measured stages are
    /// closed, as their requests have no schedule to be late for; else the response time.
    pub fn headline_time(&self) -> Metric {
        let mut measured = self.stages.iter().filter(|stage| !stage.warmup).peekable();
        let any = measured.peek().is_some();
        if any && measured.all(|stage| stage.model == LoadModel::Closed) {
            Metric::ServiceTime
        } else {
            Metric::ResponseTime
        }
    }
}
