//! The resolved intent of a run: immutable, every default visible.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use plimsoll_measure::{Nanos, Seed, Stripe};
use plimsoll_protocol::Dialect;
use plimsoll_schedule::{Arrivals, Stages};
use plimsoll_workload::{ScenarioSpec, Trace, TraceSpec, WorkloadError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::document;
use crate::secret::{HeaderValue, REDACTED, Secret, is_sensitive};
use crate::url::TargetUrl;

/// What happens to an arrival when `max_in_flight` is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// It waits for a free place, and its waiting is charged from the intended start.
    #[default]
    Queue,
    /// It is not sent, and counted as never sent.
    Drop,
}

/// One target of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// Name in reports.
    pub name: String,
    /// Base URL: scheme, host, port and an optional path prefix; never with credentials.
    pub url: TargetUrl,
    /// Model asked for.
    pub model: String,
    /// Key: `Authorization: Bearer`, or `x-api-key` for Anthropic's dialect.
    pub key: Option<Secret>,
    /// Headers of every request; values under names that carry credentials are secret.
    pub headers: BTreeMap<String, HeaderValue>,
    /// Overrides the protocol of every scenario.
    pub protocol: Option<Dialect>,
}

/// Bounds on what the generator does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Most requests under way at once in the open model, over all workers of all shards.
    pub max_in_flight: u64,
    /// What happens beyond that.
    pub overflow: Overflow,
    /// Time limit of one request, from its dispatch to the end of its answer.
    pub timeout: Nanos,
    /// Time limit of connection set-up, each attempt.
    pub connect_timeout: Nanos,
    /// How long answers are waited for when the stages are over.
    pub drain: Nanos,
    /// Largest response body that is read, in bytes.
    pub max_body: u64,
    /// Worker threads; `None` means one for each core that this process may use.
    pub workers: Option<u16>,
}

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsPlan {
    /// Trusted roots instead of the system's, PEM.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Do not verify the target's certificate; said loudly in every report.
    #[serde(default)]
    pub insecure: bool,
    /// New connections resume earlier sessions where the target offers it; without it every handshake is a full one.
    #[serde(default = "resumption")]
    pub resumption: bool,
}

impl Default for TlsPlan {
    fn default() -> Self {
        Self { ca_file: None, insecure: false, resumption: resumption() }
    }
}

const fn resumption() -> bool {
    true
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpVersion {
    /// HTTP/1.1: one request after another on a connection.
    #[default]
    #[serde(rename = "http1")]
    Http1,
    /// HTTP/2: many at once. Over TLS it is agreed on by ALPN, over plain TCP it is taken for granted.
    #[serde(rename = "http2")]
    Http2,
}

/// How HTTP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HttpPlan {
    /// The version.
    pub version: HttpVersion,
    /// HTTP/2: requests that one connection carries at once.
    pub streams_per_connection: u32,
    /// HTTP/1.1: requests after which a connection is closed.
    pub requests_per_connection: Option<ConnectionLifetime>,
}

/// How long connections live: a number of requests, drawn anew for each between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionLifetime {
    /// The least.
    #[schemars(range(min = 1))]
    pub min: u32,
    /// The most; no less than `min`.
    #[schemars(range(min = 1))]
    pub max: u32,
}

/// How the instrument measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Instrument {
    /// Answers are stamped by the kernel when they arrive, not when they are read.
    pub kernel_timestamps: bool,
    /// How long before an intended start a worker stops sleeping and spins.
    pub spin: Nanos,
    /// Each worker is bound to a CPU of its own, where there are enough.
    pub pin_workers: bool,
    /// Of one conversation in so many, rows tell when each content event arrived; 0 for none.
    pub event_times: u32,
}

/// The resolved plan of one run.
///
/// Whatever shows it, `Debug` and `Serialize` included, shows no credentials.
#[derive(Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the run.
    pub name: String,
    /// Version of the tool that resolved the plan.
    pub tool_version: String,
    /// Seed of every random draw.
    #[serde(serialize_with = "seed")]
    pub seed: Seed,
    /// The part of the run that this process carries.
    #[serde(serialize_with = "stripe")]
    pub shard: Stripe,
    /// When.
    pub stages: Stages,
    /// How the open model spaces its arrivals.
    pub arrivals: Arrivals,
    /// What.
    #[serde(serialize_with = "scenarios")]
    pub scenarios: Vec<ScenarioSpec>,
    /// Recorded traffic, where a stage plays it.
    pub trace: Option<TraceSpec>,
    /// A local `tokenizer.json` for content sized in tokens.
    pub tokenizer: Option<PathBuf>,
    /// Where to. One target for `run`; several are loaded in the same window.
    pub targets: Vec<Target>,
    /// Bounds.
    pub limits: Limits,
    /// HTTP.
    pub http: HttpPlan,
    /// Local addresses that connections start from, in turn; none leaves it to the kernel.
    pub bind: Vec<IpAddr>,
    /// TLS.
    pub tls: TlsPlan,
    /// The instrument itself.
    pub instrument: Instrument,
    /// Bounds on aggregates, by metric: `"ttft" -> ["p(95)<500ms"]`.
    pub thresholds: BTreeMap<String, Vec<String>>,
    /// Aggregates in three bands, by metric: `"response_time" -> ["p(95)<10ms|20ms"]`.
    pub bands: BTreeMap<String, Vec<String>>,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
}

impl Plan {
    /// The plan as a person reads it: YAML, every default visible, credentials redacted.
    pub fn show(&self) -> String {
        serde_saphyr::to_string(self).unwrap_or_default()
    }

    /// Reads the trace, which may be one that comes with the tool.
    ///
    /// # Errors
    /// As [`Trace::load`].
    pub fn read_trace(&self) -> Result<Option<Trace>, WorkloadError> {
        self.trace.as_ref().map(document::read_trace).transpose()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

/// Scenarios know their headers as plain texts; what is shown of them is redacted by name.
fn scenarios<S: Serializer>(scenarios: &[ScenarioSpec], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(scenarios.iter().cloned().map(redacted))
}

fn redacted(mut scenario: ScenarioSpec) -> ScenarioSpec {
    let of_http = scenario.http.iter_mut().flat_map(|http| &mut http.headers);
    for (name, value) in scenario.headers.iter_mut().chain(of_http) {
        if is_sensitive(name) {
            REDACTED.clone_into(value);
        }
    }
    scenario
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn seed<S: Serializer>(seed: &Seed, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(seed.0)
}

fn stripe<S: Serializer>(stripe: &Stripe, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{}/{}", stripe.index(), stripe.count()))
}
