//! Run metadata: names, stages, targets and machine of a run, all but its measurements.

use std::collections::BTreeMap;

use plimsoll_measure::{IdSeed, PolicyDecision, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;

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
    /// Distinguishes runs with the same seed; `--run-id` reproduces the ids of its requests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run_id: String,
    /// Id of the launch that started this shard, as named by its launcher.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub launch: String,
    /// Hash of the requests and their schedule: equal for comparable runs, whatever their target,
    /// key, seed and names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plan_hash: String,
    /// The part of the run that this process carried, `k/n` with k from 0.
    pub shard: String,
    /// Wall-clock time of the run clock's epoch, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How it ended.
    pub ended: RunEnd,
    /// Why it ended before its plan, if `ended` does not have the reason: a budget, for example.
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
#[serde_with::skip_serializing_none]
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
    /// Open model: arrivals in the schedule, over all shards; left out if the number of requests is
    /// limited, or targets are compared.
    pub arrivals: Option<u64>,
    /// Closed model: virtual users, on average over the stage.
    pub users: Option<f64>,
    /// Most requests in flight at once, if watched.
    pub peak_in_flight: Option<u64>,
    /// Mean number of requests in flight over the stage, if watched.
    pub mean_in_flight: Option<f64>,
}

/// A target.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetInfo {
    /// Name in reports.
    pub name: String,
    /// Base URL, without credentials.
    pub url: String,
    /// Model asked for; empty for plain HTTP.
    pub model: String,
    /// In a comparison: whether it reaches the upstream without the gateway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// The target's `Server` header, if it sent one.
    pub server: Option<String>,
    /// Message of its most frequent kind of incomplete request.
    pub failure: Option<String>,
    /// Connections by address, where the target's name has several addresses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, u64>,
    /// Connections by the result of their TLS handshake, like `TLS 1.3, ALPN h2`; empty without
    /// TLS.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls: BTreeMap<String, u64>,
}

/// The expectation of a scenario.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// The expected policy decision on its turns, if any.
    #[schemars(with = "Option<String>")]
    pub policy_decision: Option<PolicyDecision>,
    /// Label by which scenarios are grouped, like `sql_injection`.
    pub category: Option<String>,
}

/// Everything that a summary needs besides the measurements. Stored in `plan.json` before the load
/// starts, so that a summary can be rebuilt from `results.jsonl`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunMetadata {
    /// The run.
    pub run: RunInfo,
    /// Its stages, in the order of their ids.
    pub stages: Vec<StageInfo>,
    /// Names of its scenarios, in the order of their ids.
    pub scenarios: Vec<String>,
    /// Expectations of the scenarios, in the same order.
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
    pub max_requests: Option<u64>,
    /// Whether most requests may fail (`allow_failures`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failures: bool,
    /// Bounds of a good request, if the profile has any: `ttft<500ms & tpot<50ms`.
    pub goodput: Option<String>,
    /// Names of the parts of their time that targets state in headers, in the order of their
    /// numbers: the first 8 that
    /// came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_parts: Vec<String>,
    /// Its targets, in the order of their ids.
    pub targets: Vec<TargetInfo>,
    /// Input tokens that the load asks for, if every scenario states the same length.
    pub input_tokens_asked: Option<f64>,
    /// Output tokens that the load asks for, if every scenario sets the same limit.
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
    /// Changes made to the input before sending, and the findings of the probe.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Requests that did not complete for the same reason, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureKind {
    /// An error class, `status N` of a refusal, `usage` for impossible token counts, or `total` for
    /// counts that do not add up to their total.
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

// The machine that the load came from.

/// The generator's machine, as Plimsoll found it. `None` means that it could not be found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Environment {
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Logical CPUs of the machine.
    pub cpu_count: Option<u32>,
    /// CPU time that the control group allows, in CPUs.
    pub cpu_quota: Option<f64>,
    /// The CPUs that this process may run on, like `0-3,8`.
    pub cpu_affinity: Option<String>,
    /// Frequency governor.
    pub cpu_governor: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Operating system and kernel version.
    pub kernel: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Limit on open file descriptors, after it was raised.
    pub fd_limit: Option<u64>,
    /// First and last local port for outgoing connections.
    pub port_range: Option<(u16, u16)>,
    /// Speed of the fastest network link, in Mbit/s.
    pub link_mbit: Option<f64>,
    /// Load average of 1, 5 and 15 minutes at the start.
    pub load_average: Option<(f64, f64, f64)>,
    /// Share of CPU time that the hypervisor withheld, shortly before the start.
    pub steal_share: Option<f64>,
    /// Versions of the tool and its parts.
    pub versions: BTreeMap<String, String>,
}
