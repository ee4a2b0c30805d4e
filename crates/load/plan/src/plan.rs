//! The resolved plan of a run: immutable, with every default filled in.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use plimsoll_measure::{IdSeed, Nanos, RequestBounds, RunId, Seed, Stripe};
use plimsoll_protocol::Dialect;
use plimsoll_schedule::{Arrivals, PairMode, PairOrder, PairSpec, Stages};
use plimsoll_workload::{Content, ScenarioSpec, Trace, TraceSpec, WorkloadError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use smart_default::SmartDefault;

use crate::response_headers::ResponseHeaders;
use crate::secret::{HeaderValue, REDACTED, Secret, is_shown_header, redacted_path};
use crate::url::{ReachPlan, TargetUrl};

/// The treatment of an arrival when `max_in_flight` is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The arrival waits for a free slot. The wait counts, because times start at the intended
    /// start.
    #[default]
    Queue,
    /// The arrival is not sent, and is counted as never sent.
    Drop,
}

/// How a virtual user reacts when a response asks it to wait (`Retry-After` with a 429 or 503).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// It continues at once.
    #[default]
    Ignore,
    /// It waits that long before its next conversation. The waits are counted separately.
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
    /// API key: `Authorization: Bearer`, or `x-api-key` for Anthropic's dialect.
    pub key: Option<Secret>,
    /// Headers of every request; values are secret, except for a few harmless names.
    pub headers: BTreeMap<String, HeaderValue>,
    /// Overrides the protocol of every scenario.
    pub protocol: Option<Dialect>,
    /// In a comparison: whether it is the upstream, without the gateway. This changes no request,
    /// and is therefore not part of the plan's hash.
    #[serde(skip)]
    pub direct: bool,
    /// Part in a comparison.
    #[serde(skip_serializing_if = "TargetRole::is_default")]
    pub role: TargetRole,
    /// Its process on this host: `pid:4711`, or `:8080` by its port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
}

/// Limits of the load generator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Maximum number of requests in flight in the open model, over all workers of all shards.
    pub max_in_flight: u64,
    /// How arrivals beyond that are handled.
    pub overflow: Overflow,
    /// Time limit of one request, from its dispatch to the end of its response.
    pub timeout: Nanos,
    /// Time limit of each attempt to open a connection.
    pub connect_timeout: Nanos,
    /// Time to wait for responses after the last stage.
    pub drain: Nanos,
    /// Maximum size of a response body, in bytes.
    pub max_body: u64,
    /// Number of requests after which the run ends, over all workers of all shards; `None` for no
    /// limit.
    pub max_requests: Option<u64>,
    /// Spending limit of the run, over all workers of all shards; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetPlan>,
    /// Minimum length of a closed stage in response times of each virtual user, if the probe has
    /// measured the response time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers_per_user: Option<u32>,
    /// Share of failed requests above which the run ends.
    pub abort_on_error_rate: Option<f64>,
    /// Whether a run may pass although most requests fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_failures: bool,
    /// Whether virtual users wait as requested by `Retry-After` in a 429 or 503.
    pub honour_retry_after: bool,
    /// Number of worker threads; `None` for one per core available to the process.
    pub workers: Option<u16>,
}

impl Limits {
    /// Limits of a profile without any.
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

/// Spending limit of a run, including its warm-up but not the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetPlan {
    /// Input and output tokens together.
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Money, in the currency of the prices.
    #[schemars(range(min = 0))]
    pub cost: Option<f64>,
    /// Price of a million input tokens.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub input_price: f64,
    /// Price of a million output tokens.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub output_price: f64,
}

/// TLS settings.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsPlan {
    /// Trusted roots instead of the system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// The client's certificate chain, PEM, for targets that request one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// Private key of `cert_file`, PEM. Default: it is in the same file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Whether to skip the verification of the target's certificate; every report states it
    /// prominently.
    pub insecure: bool,
    /// Whether new connections resume earlier sessions if the target offers it. Otherwise, every
    /// handshake is a full one.
    #[default = true]
    pub resumption: bool,
}

impl TlsPlan {
    /// Paths of the client's certificate and of its key.
    pub fn client_files(&self) -> Option<(&PathBuf, &PathBuf)> {
        let certificate = self.cert_file.as_ref()?;
        Some((certificate, self.key_file.as_ref().unwrap_or(certificate)))
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpVersion {
    /// HTTP/1.1: one request after another on a connection.
    #[default]
    #[serde(rename = "http1")]
    Http1,
    /// HTTP/2: simultaneous requests on a connection. Negotiated by ALPN over TLS, assumed over
    /// plain TCP.
    #[serde(rename = "http2")]
    Http2,
}

/// HTTP settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HttpPlan {
    /// Version of HTTP.
    pub version: HttpVersion,
    /// HTTP/2: maximum number of simultaneous requests per connection.
    pub streams_per_connection: u32,
    /// HTTP/1.1: number of requests after which a connection is closed.
    pub requests_per_connection: Option<ConnectionLifetime>,
    /// Maximum number of connections to each target in the open model, over all workers of all
    /// shards; `None` for as many as needed.
    pub max_connections: Option<u64>,
    /// HTTP/1.1: maximum idle time of a connection that is reused.
    pub idle_limit: Nanos,
    /// Whether to retry a request that a closed connection never answered.
    pub retry_reused: bool,
    /// Maximum number of redirects to follow per request.
    #[serde(skip_serializing_if = "is_zero")]
    pub redirects: u8,
}

const fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl HttpPlan {
    /// Settings of a profile without any. Node, uvicorn and Apache close an idle connection after 5
    /// s, nginx after 75 s.
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

/// Number of requests after which a connection is closed, drawn for each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionLifetime {
    /// Minimum.
    #[schemars(range(min = 1))]
    pub min: u32,
    /// Maximum; at least `min`.
    #[schemars(range(min = 1))]
    pub max: u32,
}

/// Settings of the measurement itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Instrument {
    /// Whether responses get the kernel's receive time stamps instead of the times at which they
    /// are read.
    pub kernel_timestamps: bool,
    /// Time before an intended start at which a worker stops sleeping and spins.
    pub spin: Nanos,
    /// Whether each worker is pinned to its own CPU, if there are enough.
    pub pin_workers: bool,
    /// Records the arrival time of each content event for one conversation in N; 0 for none.
    pub event_times: u32,
}

impl Instrument {
    /// Settings of a profile without any. A sleeping core of a virtual machine wakes up in less
    /// than the spinning time.
    pub const DEFAULT: Self = Self {
        kernel_timestamps: true,
        spin: Nanos::from_micros(150),
        pin_workers: false,
        event_times: 0,
    };
}

/// The resolved plan of one run.
///
/// None of its outputs has credentials, including `Debug` and `Serialize`.
#[derive(Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the run.
    pub name: String,
    /// Version of the tool that resolved the plan.
    pub tool_version: String,
    /// Seed of all random numbers.
    #[serde(serialize_with = "seed")]
    pub seed: Seed,
    /// Id that distinguishes this run from others with the same seed. The ids of requests and the
    /// markers that keep prompts out of caches are derived from it. `None` lets the run draw a
    /// random one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Part of the run that this process executes.
    #[serde(serialize_with = "stripe")]
    pub shard: Stripe,
    /// The stages.
    pub stages: Stages,
    /// The spacing of arrivals in the open model.
    pub arrivals: Arrivals,
    /// The scenarios.
    #[serde(serialize_with = "scenarios")]
    pub scenarios: Vec<ScenarioSpec>,
    /// Recorded traffic, if a stage replays it.
    pub trace: Option<TraceSpec>,
    /// Path of a local `tokenizer.json` for content sized in tokens.
    pub tokenizer: Option<PathBuf>,
    /// Targets: one for `run`, several if they are loaded at the same time.
    pub targets: Vec<Target>,
    /// Options of the comparison; `None` for a run with one target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus: Option<VersusPlan>,
    /// Limits of the load generator.
    pub limits: Limits,
    /// HTTP settings.
    pub http: HttpPlan,
    /// Local addresses of connections, used in turn; if empty, the kernel chooses.
    pub bind: Vec<IpAddr>,
    /// Alternatives to a direct connection to the targets' addresses.
    #[serde(skip_serializing_if = "ReachPlan::is_direct")]
    pub reach: ReachPlan,
    /// TLS settings.
    pub tls: TlsPlan,
    /// Settings of the measurement itself.
    pub instrument: Instrument,
    /// Response headers that are read and recorded.
    pub response_headers: ResponseHeaders,
    /// Bounds that a good request meets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<RequestBounds>,
    /// Thresholds and bands by metric: `"ttft" -> ["p(95)<500ms", "p(50)<10ms|20ms"]`.
    pub thresholds: BTreeMap<String, Vec<String>>,
    /// Allowed regression of figures in a comparison: `"ttft.p99" -> "10%"`.
    pub gate: BTreeMap<String, String>,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
    /// Members of prompt files that are not sent: `image_url (1) of prompts.jsonl`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsent: Vec<String>,
    /// Notes for the user, such as thresholds that this command does not judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Plan {
    /// Seed of the ids of this run's requests. Without a run id it is the same for every run.
    pub fn id_seed(&self) -> IdSeed {
        IdSeed::new(self.seed, self.run_id.as_ref().map_or("", RunId::as_str))
    }

    /// Whether conversations share text that begins with the run id: a pool of prefixes, or the
    /// blocks of a trace. Shards with different run ids would not share it.
    pub fn shares_text_of_the_run(&self) -> bool {
        let blocks = self.has_blocks();
        self.scenarios
            .iter()
            .filter(|scenario| scenario.cache_mode.busts(false))
            .any(|scenario| blocks || scenario.prefix_pool.is_some())
    }

    /// Whether each of a scenario's requests has its own text, so that no cache can answer it. The
    /// prompts of a trace with shared blocks repeat as recorded, and a plain request is unique only
    /// with a unique placeholder.
    pub fn busts_caches(&self, scenario: &ScenarioSpec) -> bool {
        let is_unique = match &scenario.http {
            Some(http) if scenario.protocol == Dialect::Http => {
                has_unique_placeholder(&http.path) || has_unique_placeholder(&http.body)
            }
            // Lists and pings are the same in every session.
            _ if scenario.protocol == Dialect::Mcp => false,
            _ => !self.has_blocks(),
        };
        let file = matches!(scenario.content, Content::File { .. });
        let own_texts = file || self.traffic().is_some_and(|trace| trace.has_texts());
        scenario.cache_mode.busts(own_texts) && is_unique
    }

    /// The files of recorded traffic that the run sends, which were read when it was resolved.
    pub fn traffic_files(&self) -> Vec<(&Path, Arc<Trace>)> {
        let contents = self.scenarios.iter().filter_map(|scenario| match &scenario.content {
            Content::File { file, read, .. } => Some((file.as_path(), Arc::clone(read.trace()?))),
            _ => None,
        });
        let trace = self.trace.as_ref().map(|spec| &*spec.file).zip(self.traffic());
        let mut files: Vec<_> = contents.chain(trace).collect();
        files.dedup_by_key(|(file, _)| *file);
        files
    }

    /// The trace, if there is one that can be read.
    fn traffic(&self) -> Option<Arc<Trace>> {
        self.read_trace().ok().flatten()
    }

    /// Whether the prompts of the trace share blocks.
    fn has_blocks(&self) -> bool {
        self.traffic().is_some_and(|trace| trace.has_blocks())
    }

    /// Reads the trace, from a file or built in.
    ///
    /// # Errors
    /// The same as [`Trace::load`].
    pub fn read_trace(&self) -> Result<Option<Arc<Trace>>, WorkloadError> {
        self.trace.as_ref().map(read_trace).transpose()
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

/// Redacts the headers and queries of scenarios, which are plain texts there, except harmless ones.
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

fn seed<S: Serializer>(seed: &Seed, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(seed.0)
}

fn stripe<S: Serializer>(stripe: &Stripe, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{}/{}", stripe.index(), stripe.count()))
}

// The file of a trace: a user's or a built-in one.

/// Prefix of the paths of built-in files.
const BUILTIN: &str = "builtin:";

/// Built-in files, by the name after `builtin:`.
const FILES: [BuiltinFile; 2] = [
    BuiltinFile {
        path: "traces/azure-example.csv",
        text: include_str!("../../../../profiles/traces/azure-example.csv"),
    },
    BuiltinFile {
        path: "traces/mooncake-example.jsonl",
        text: include_str!("../../../../profiles/traces/mooncake-example.jsonl"),
    },
];

struct BuiltinFile {
    path: &'static str,
    text: &'static str,
}

/// Whether a path names a built-in file.
pub fn is_builtin(path: &Path) -> bool {
    builtin_path(path).is_some()
}

/// Reads a trace, from a file or built in.
///
/// # Errors
/// The same as [`Trace::load`].
pub fn read_trace(spec: &TraceSpec) -> Result<Arc<Trace>, WorkloadError> {
    spec.read.get(|| read(spec)).map_err(WorkloadError::Import)
}

fn read(spec: &TraceSpec) -> Result<Trace, WorkloadError> {
    let Some(path) = builtin_path(&spec.file) else { return Trace::load(spec, Path::new("")) };
    let Some(file) = FILES.iter().find(|file| file.path == path) else {
        let source = io::ErrorKind::NotFound.into();
        return Err(WorkloadError::Read { file: spec.file.clone(), source });
    };
    Trace::parse(spec, file.text.as_bytes())
}

fn builtin_path(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(BUILTIN)
}

// The resolved plan of a comparison.

/// The part of a target in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetRole {
    /// A compared target; also the only target of a run without a comparison.
    #[default]
    Candidate,
    /// The target that the others are compared with.
    Reference,
    /// A second copy of the reference, or another path to the same upstream. A difference between
    /// the two shows that the measurement is wrong.
    Control,
}

impl TargetRole {
    /// Whether it is the role of a run without a comparison.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Source of the model's answers in later turns of a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replies {
    /// Fixed texts, the same for all targets.
    #[default]
    Canned,
    /// The target's own answers.
    Live,
}

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersusPlan {
    /// How the targets share the time of open stages.
    pub schedule: PairMode,
    /// Order of the targets.
    pub order: PairOrder,
    /// `spread`: maximum time between two requests of a block.
    pub gap: Nanos,
    /// `turns`: minimum length of a window.
    pub window: Nanos,
    /// Time for which each target is loaded alone, to measure interference.
    pub alone: Nanos,
    /// Source of the model's answers in later turns.
    pub replies: Replies,
    /// Margin by which a target may be worse than the best one, as a share.
    pub margin: Option<f64>,
    /// Whether the run ends as soon as it is decided.
    #[serde(skip_serializing_if = "is_false")]
    pub decide: bool,
    /// Number of repetitions of the comparison.
    pub rounds: u32,
    /// Time from the start of one round to the start of the next.
    pub every: Option<Nanos>,
    /// Thresholds on overhead over the reference: `added.ttft{target:a}` -> `["p(50)<200us"]`.
    /// Their judge parses them.
    pub thresholds: BTreeMap<String, Vec<String>>,
}

impl VersusPlan {
    /// The pairing of the schedule for this number of targets.
    pub const fn pairs(&self, targets: u16) -> PairSpec {
        PairSpec {
            targets,
            mode: self.schedule,
            order: self.order,
            gap: self.gap,
            window: self.window,
            alone: self.alone,
        }
    }
}

const fn is_false(value: &bool) -> bool {
    !*value
}

/// Prefix of thresholds on overhead.
pub const ADDED: &str = "added.";
