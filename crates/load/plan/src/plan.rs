//! The resolved plan of a run: immutable, with every default filled in.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use plimsoll_measure::{IdSeed, Nanos, RequestBounds, RunId, Seed, Stripe};
use plimsoll_protocol::Dialect;
use plimsoll_schedule::{Arrivals, Stages};
use plimsoll_workload::{CacheMode, ScenarioSpec, Trace, TraceSpec, WorkloadError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::reach::ReachPlan;
use crate::response_headers::ResponseHeaders;
use crate::secret::{HeaderValue, REDACTED, Secret, is_shown_header, redacted_path};
use crate::trace_file;
use crate::url::TargetUrl;
use crate::versus::{TargetRole, VersusPlan};

/// The treatment of an arrival when `max_in_flight` is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// It waits for a free slot. The wait counts, since times start at the intended start.
    #[default]
    Queue,
    /// It is not sent, and is counted as never sent.
    Drop,
}

/// What a virtual user does when a response asks it to wait (`Retry-After` with a 429 or 503).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// It goes on at once.
    #[default]
    Ignore,
    /// It waits that long before its next conversation. The waits are counted apart.
    Honour,
}

/// One target of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// Name in reports.
    pub name: String,
    /// Base URL: scheme, host, port and an optional path prefix; never with credentials.
    pub url: TargetUrl,
    /// Name of the model.
    pub model: String,
    /// Key: `Authorization: Bearer`, or `x-api-key` for Anthropic's dialect.
    pub key: Option<Secret>,
    /// Headers of every request; values are secret, but for a few harmless names.
    pub headers: BTreeMap<String, HeaderValue>,
    /// Overrides the protocol of every scenario.
    pub protocol: Option<Dialect>,
    /// Of a comparison: whether it reaches the upstream without the gateway. It changes
    /// nothing that is sent, and so is no part of the plan's hash.
    #[serde(skip)]
    pub direct: bool,
    /// What it is in a comparison.
    #[serde(skip_serializing_if = "TargetRole::is_default")]
    pub role: TargetRole,
    /// Its process on this host: `pid:4711`, or `:8080` by its port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
    /// The size of its image in bytes, as the user says. It changes nothing that is sent.
    #[serde(skip)]
    pub image_bytes: Option<u64>,
    /// How long its start takes, as the user says.
    #[serde(skip)]
    pub startup: Option<Nanos>,
}

/// Limits of the load generator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Most requests in flight at once in the open model, over all workers of all shards.
    pub max_in_flight: u64,
    /// The treatment of arrivals beyond that.
    pub overflow: Overflow,
    /// Time limit of one request, from its dispatch to the end of its response.
    pub timeout: Nanos,
    /// Time limit of connection set-up, each attempt.
    pub connect_timeout: Nanos,
    /// How long the run waits for responses when the stages are over.
    pub drain: Nanos,
    /// Largest response body that is read, in bytes.
    pub max_body: u64,
    /// Requests after which the run ends, over all workers of all shards; `None` for no limit.
    pub max_requests: Option<u64>,
    /// What the run may spend, over all workers of all shards; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetPlan>,
    /// How many answers of each virtual user a closed stage lasts for at least, if the probe shows
    /// how long an answer takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers_per_user: Option<u32>,
    /// The share of requests without a good answer beyond which the run ends.
    pub abort_on_error_rate: Option<f64>,
    /// Whether most requests may fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_failures: bool,
    /// Whether a virtual user waits as long as a 429 or 503 asks with `Retry-After`.
    pub honour_retry_after: bool,
    /// Worker threads; `None` means one for each core that this process may use.
    pub workers: Option<u16>,
}

impl Limits {
    /// Those of a profile that says nothing of them.
    pub const DEFAULT: Self = Self {
        max_in_flight: 10_000,
        overflow: Overflow::Queue,
        timeout: Nanos::from_secs(60),
        connect_timeout: Nanos::from_secs(5),
        drain: Nanos::from_secs(30),
        max_body: 16 << 20,
        max_requests: None,
        budget: None,
        answers_per_user: None,
        abort_on_error_rate: None,
        allow_failures: false,
        honour_retry_after: false,
        workers: None,
    };
}

/// What a run may spend, warm-up included; the probe is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetPlan {
    /// Tokens of input and output together.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Money, in the currency of the prices.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cost: Option<f64>,
    /// The price of a million tokens of input.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub input_price: f64,
    /// The price of a million tokens of output.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub output_price: f64,
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsPlan {
    /// Trusted roots instead of the system's, PEM.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// The client's certificate and those up to its root, PEM, for targets that ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The private key of `cert_file`, PEM. Left out: it is in the same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Do not verify the target's certificate; every report states it prominently.
    #[serde(default)]
    pub insecure: bool,
    /// New connections resume earlier sessions if the target offers it. If false, every handshake
    /// is a full one.
    #[serde(default = "resumption")]
    pub resumption: bool,
}

impl Default for TlsPlan {
    fn default() -> Self {
        Self {
            ca_file: None,
            cert_file: None,
            key_file: None,
            insecure: false,
            resumption: resumption(),
        }
    }
}

impl TlsPlan {
    /// The files of the client's certificate and of its key.
    pub fn client_files(&self) -> Option<(&PathBuf, &PathBuf)> {
        let certificate = self.cert_file.as_ref()?;
        Some((certificate, self.key_file.as_ref().unwrap_or(certificate)))
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
    /// HTTP/2: many requests at once. Negotiated by ALPN over TLS, assumed over plain TCP.
    #[serde(rename = "http2")]
    Http2,
}

/// HTTP settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HttpPlan {
    /// The version.
    pub version: HttpVersion,
    /// HTTP/2: requests that one connection carries at once.
    pub streams_per_connection: u32,
    /// HTTP/1.1: requests after which a connection is closed.
    pub requests_per_connection: Option<ConnectionLifetime>,
    /// Most connections to each target in the open model, over all workers of all shards; `None`
    /// for as many as are needed.
    pub max_connections: Option<u64>,
    /// HTTP/1.1: a connection that has been idle for longer is not used again.
    pub idle_limit: Nanos,
    /// Whether a request that a closing connection never answered is sent again.
    pub retry_reused: bool,
    /// Redirects of one request that are followed.
    #[serde(skip_serializing_if = "is_zero")]
    pub redirects: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl HttpPlan {
    /// That of a profile that says nothing of it. Node, uvicorn and Apache close an idle connection
    /// after 5 s, nginx after 75 s.
    pub const DEFAULT: Self = Self {
        version: HttpVersion::Http1,
        streams_per_connection: 100,
        requests_per_connection: None,
        max_connections: None,
        idle_limit: Nanos::from_secs(4),
        retry_reused: true,
        redirects: 0,
    };
}

/// The number of requests after which a connection is closed, drawn for each connection.
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

/// Settings of the measurement itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Instrument {
    /// Responses get the kernel's receive time stamps, not the times at which they are read.
    pub kernel_timestamps: bool,
    /// How long before an intended start a worker stops sleeping and spins.
    pub spin: Nanos,
    /// Each worker is bound to its own CPU, if there are enough.
    pub pin_workers: bool,
    /// Rows record the arrival time of each content event for one conversation in N; 0 for none.
    pub event_times: u32,
}

impl Instrument {
    /// That of a profile that says nothing of it. A sleeping core of a virtual machine wakes up in
    /// less than the time of spinning.
    pub const DEFAULT: Self = Self {
        kernel_timestamps: true,
        spin: Nanos::from_micros(150),
        pin_workers: false,
        event_times: 0,
    };
}

/// The resolved plan of one run.
///
/// No output of it contains credentials, `Debug` and `Serialize` included.
#[derive(Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the run.
    pub name: String,
    /// Version of the tool that resolved the plan.
    pub tool_version: String,
    /// Seed of every random draw.
    #[serde(serialize_with = "seed")]
    pub seed: Seed,
    /// What tells this run from others with the same seed: the ids of requests and the markers that
    /// keep prompts out of caches follow from it. `None` lets the run draw a random one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The part of the run that this process carries.
    #[serde(serialize_with = "stripe")]
    pub shard: Stripe,
    /// The stages.
    pub stages: Stages,
    /// The spacing of arrivals in the open model.
    pub arrivals: Arrivals,
    /// The scenarios.
    #[serde(serialize_with = "scenarios")]
    pub scenarios: Vec<ScenarioSpec>,
    /// Recorded traffic, if a stage plays it.
    pub trace: Option<TraceSpec>,
    /// A local `tokenizer.json` for content sized in tokens.
    pub tokenizer: Option<PathBuf>,
    /// The targets: one for `run`, several if they are loaded at the same time.
    pub targets: Vec<Target>,
    /// How the targets are compared; `None` for a run with one target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus: Option<VersusPlan>,
    /// Limits of the load generator.
    pub limits: Limits,
    /// HTTP settings.
    pub http: HttpPlan,
    /// Local addresses of connections, used in turn; none leaves the choice to the kernel.
    pub bind: Vec<IpAddr>,
    /// Other ways to the targets than straight to their addresses.
    #[serde(skip_serializing_if = "ReachPlan::is_direct")]
    pub reach: ReachPlan,
    /// TLS settings.
    pub tls: TlsPlan,
    /// Settings of the measurement itself.
    pub instrument: Instrument,
    /// Response headers that are read and recorded.
    pub response_headers: ResponseHeaders,
    /// What makes a request a good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<RequestBounds>,
    /// Limits by metric, thresholds and bands: `"ttft" -> ["p(95)<500ms", "p(50)<10ms|20ms"]`.
    pub thresholds: BTreeMap<String, Vec<String>>,
    /// How much worse figures may get in a comparison: `"ttft.p99" -> "10%"`.
    pub gate: BTreeMap<String, String>,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
    /// The members of files of prompts that are not sent: `image_url (1) of prompts.jsonl`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsent: Vec<String>,
    /// Notes for the user, like bounds that this command does not judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Plan {
    /// The seed of the ids of this run's requests. Without a run id it is the same for every run.
    pub fn id_seed(&self) -> IdSeed {
        IdSeed::new(self.seed, self.run_id.as_ref().map_or("", RunId::as_str))
    }

    /// Whether conversations share text that begins with the id of the run: a pool of prefixes, or
    /// the blocks of a trace. Shards with different run ids would not share it.
    pub fn shares_text_of_the_run(&self) -> bool {
        let blocks = self.trace.as_ref().is_some_and(|trace| trace.format.has_blocks());
        self.scenarios
            .iter()
            .filter(|scenario| scenario.cache_mode == CacheMode::Bust)
            .any(|scenario| blocks || scenario.prefix_pool.is_some())
    }

    /// Whether no cache should be able to answer a scenario's requests: each has a text of its own.
    /// The prompts of a trace with shared blocks repeat as they were recorded, and a plain request
    /// is unique only with a placeholder that is.
    pub fn busts_caches(&self, scenario: &ScenarioSpec) -> bool {
        let blocks = self.trace.as_ref().is_some_and(|trace| trace.format.has_blocks());
        let is_unique = match &scenario.http {
            Some(http) if scenario.protocol == Dialect::Http => {
                has_unique_placeholder(&http.path) || has_unique_placeholder(&http.body)
            }
            // Lists and pings are the same in every session.
            _ if scenario.protocol == Dialect::Mcp => false,
            _ => !blocks,
        };
        scenario.cache_mode == CacheMode::Bust && is_unique
    }

    /// Reads the trace, from a file or built in.
    ///
    /// # Errors
    /// As [`Trace::load`].
    pub fn read_trace(&self) -> Result<Option<Trace>, WorkloadError> {
        self.trace.as_ref().map(trace_file::read_trace).transpose()
    }
}

fn has_unique_placeholder(text: &str) -> bool {
    let mut placeholders = text.split("{{").skip(1).map(str::trim_start);
    placeholders.any(|rest| rest.starts_with("uuid") || rest.starts_with("prompt"))
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string_pretty(self).unwrap_or_default())
    }
}

/// Scenarios hold their headers and queries as plain texts; all but harmless ones are redacted.
fn scenarios<S: Serializer>(scenarios: &[ScenarioSpec], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(scenarios.iter().cloned().map(redacted))
}

fn redacted(mut scenario: ScenarioSpec) -> ScenarioSpec {
    let of_http = scenario.http.iter_mut().flat_map(|http| &mut http.headers);
    for (name, value) in scenario.headers.iter_mut().chain(of_http) {
        if !is_shown_header(name) {
            REDACTED.clone_into(value);
        }
    }
    if let Some(http) = &mut scenario.http {
        http.path = redacted_path(&http.path);
    }
    if let Some(path) = &mut scenario.websocket.path {
        *path = redacted_path(path);
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
