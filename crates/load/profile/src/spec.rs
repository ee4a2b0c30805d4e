//! The keys of a profile: type, default and description of each. The JSON Schema is generated from
//! this file.

mod versus;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use plimsoll_measure::{Nanos, RequestBounds};
use plimsoll_protocol::{Dialect, TokenLimit};
use plimsoll_schedule::{Arrivals, Stages};
use plimsoll_workload::{
    A2aSpec, AgentSpec, CacheMode, Content, DurationSpec, ExpectedDecision, HttpSpec, LengthSpec,
    McpSpec, PolicyDecisionSpec, PrefixPool, SystemPrompt, TraceSpec, WebSocketSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::byte_size::ByteSize;
use plimsoll_plan::ResponseHeaders;
use plimsoll_plan::{BudgetPlan, HttpPlan, Instrument, Limits};
use plimsoll_plan::{ConnectionLifetime, HttpVersion, Overflow, RetryAfter, TlsPlan};
pub use versus::{RoleFile, TargetFile, VersusFile};

/// A Plimsoll profile: the load, its content and the target.
///
/// Every key may be left out. Durations are written with a unit (`500ms`, `30s`, `1m30s`). In
/// texts, `${NAME}` and `${NAME:-default}` stand for an environment variable, and `$$` for a dollar
/// sign.
#[derive(Clone, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent keys")]
pub struct ProfileFile {
    /// Name of the run, in reports and in the name of its folder. Left out: the file's name.
    pub name: Option<String>,
    /// Base URL of the target: scheme, host, port, an optional path prefix, and an optional query
    /// that is kept on every request, like `?api-version=2024-06-01`.
    pub target: Option<String>,
    /// The target's key: sent as `Authorization: Bearer`, or as `x-api-key` in Anthropic's
    /// protocol.
    pub key: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// The targets that `plimsoll versus` compares. `plimsoll run` has the one in `target`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetFile>,
    /// How `plimsoll versus` compares them.
    pub versus: VersusFile,
    /// Seed of every random draw: the same profile and seed give the same arrivals and prompts.
    #[default(1)]
    pub seed: u64,
    /// Load shapes, one after another. `10:30s` is 10 virtual users for 30 seconds, `@100:30s` is
    /// 100 arrivals per second, `@10..100:60s` is a ramp, `trace:60s` plays the arrivals of the
    /// trace. A `w` in front marks a warm-up.
    #[schemars(with = "Option<String>", extend("format" = "stages"))]
    pub stages: Option<Stages>,
    /// Spacing of the arrivals in `@` stages.
    pub arrivals: Arrivals,
    /// Headers of every request. Those of a scenario are added.
    pub headers: BTreeMap<String, String>,
    /// Response headers that are read: cache states, upstream retries, server times, and others
    /// that are recorded as they are.
    pub response_headers: ResponseHeaders,
    /// Time limit of one request, from its dispatch to the end of its response.
    #[default(Limits::DEFAULT.timeout)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub timeout: Nanos,
    /// Time limit of connection set-up.
    #[default(Limits::DEFAULT.connect_timeout)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub connect_timeout: Nanos,
    /// How long the run waits for responses when the stages are over.
    #[default(Limits::DEFAULT.drain)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub drain: Nanos,
    /// Most requests in flight at once in `@` and `trace` stages; in a comparison for each target.
    #[default(Limits::DEFAULT.max_in_flight)]
    #[schemars(range(min = 1))]
    pub max_in_flight: u64,
    /// Treatment of an arrival beyond `max_in_flight`.
    pub overflow: Overflow,
    /// Ends the run after this many requests of measured stages have been sent, whatever is left of
    /// the stages. Warm-up does not count.
    #[schemars(range(min = 1))]
    pub max_requests: Option<u64>,
    /// Ends the run when so many tokens, or so much money, are spent; what is in flight then comes
    /// on top.
    pub budget: Option<BudgetPlan>,
    /// Ends the run when more than this share of the requests (0 to 1) got no good answer, as
    /// `error_rate` counts them, warm-up included. Looked at every second, once 100 have ended.
    #[schemars(range(min = 0, max = 1))]
    pub abort_on_error_rate: Option<f64>,
    /// Lets a run pass in which half of the requests failed, and keeps sending to a
    /// target that has not answered any request well for 10 seconds. A comparison judges each
    /// target anyway.
    pub allow_failures: bool,
    /// What a virtual user does when a 429 or 503 asks it to wait (`Retry-After`).
    /// Arrivals of `@` stages do not wait.
    pub retry_after: RetryAfter,
    /// Largest response body that is read, like `16MiB`, or a number of bytes; of a compressed one
    /// what it says. An event of a stream may be as large.
    #[default(ByteSize::new(Limits::DEFAULT.max_body))]
    pub max_body: ByteSize,
    /// Worker threads. Left out: one for each core that the process may use.
    #[schemars(range(min = 1))]
    pub workers: Option<u16>,
    /// Version of HTTP.
    pub http_version: HttpVersion,
    /// HTTP/2: concurrent requests of one connection. A worker opens a connection when the others
    /// are full.
    #[default(HttpPlan::DEFAULT.streams_per_connection)]
    #[schemars(range(min = 1))]
    pub streams_per_connection: u32,
    /// HTTP/1.1: number of requests after which a connection is closed, drawn for each connection
    /// between `min` and `max`. Left out: it is kept as long as the target keeps it.
    pub requests_per_connection: Option<ConnectionLifetime>,
    /// Most connections to each target in `@` and `trace` stages. A request that finds none free
    /// waits for one; the wait is `connection_wait`, and part of the response time. Left out: as
    /// many as are needed, which `max_in_flight` bounds.
    #[schemars(range(min = 1))]
    pub max_connections: Option<u64>,
    /// HTTP/1.1: a connection that has been idle for longer is not used again. The default is below
    /// the 5 s after which many servers close one.
    #[default(HttpPlan::DEFAULT.idle_limit)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub idle_limit: Nanos,
    /// Whether a request is sent again, once, if the target closed its connection without any
    /// answer, and the connection had been used before. Browsers and proxies do the same. These
    /// requests are counted as `retries`, and their times count from the first start.
    #[default(HttpPlan::DEFAULT.retry_reused)]
    pub retry_reused: bool,
    /// Redirects of one request that are followed, to other servers as well; credentials go to the
    /// target alone. Times end with the last answer. 0: a redirect is a failure.
    pub redirects: u8,
    /// Local addresses of connections, used in turn; each address has its own local ports. Left
    /// out: the kernel chooses.
    pub bind: Vec<IpAddr>,
    /// Other places to connect to, `HOST1:PORT1:HOST2:PORT2`: connections to the first go to the
    /// second. An empty part is any, or the same. Names in requests and certificates stay.
    #[schemars(extend("items" = {"type": "string", "format": "connect to"}))]
    pub connect_to: Vec<String>,
    /// A Unix socket to connect to, in place of TCP. `target` still says the host and the scheme.
    pub unix_socket: Option<PathBuf>,
    /// A proxy on the way, `http://HOST:PORT` or `socks5://HOST:PORT`, with `USER:PASSWORD@` before
    /// the host if it wants them.
    #[schemars(extend("format" = "proxy"))]
    pub proxy: Option<String>,
    /// Whether responses get the kernel's receive time stamps, if it offers them; else they are
    /// stamped when they are read.
    #[default(Instrument::DEFAULT.kernel_timestamps)]
    pub kernel_timestamps: bool,
    /// How long before an intended start a worker stops sleeping and spins. More is more precise,
    /// and costs CPU time. At most a tenth of each wait is spent spinning.
    #[default(Instrument::DEFAULT.spin)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub spin: Nanos,
    /// Whether each worker is bound to its own CPU, of those that the process may use. Only if
    /// there is more than one and enough for all workers. Useful if the target does not share these
    /// CPUs.
    pub pin_workers: bool,
    /// Records the arrival time of each content event of a stream in `results.jsonl`, for one
    /// conversation in N; 0 for none. Conversations are selected by their ids: the same in every
    /// run with the same seed.
    pub event_times: u32,
    /// TLS: verification of an `https` target, and resumption of sessions.
    pub tls: TlsPlan,
    /// A local `tokenizer.json` that counts the tokens of content of a given size. Left out: tokens
    /// are estimated.
    pub tokenizer: Option<PathBuf>,
    /// Recorded traffic, for `trace` stages.
    pub trace: Option<TraceSpec>,
    /// What makes a request a good one, for `goodput` and `good_share`: bounds on its own times,
    /// and it must keep all. `ttft<500ms, tpot<50ms`
    #[schemars(with = "Option<String>", extend("format" = "request bounds"))]
    pub goodput: Option<RequestBounds>,
    /// Bounds on the results, by metric: `ttft: ["p(95)<500ms"]`. In a comparison also on what the
    /// targets add to the times of the reference: `added.ttft{target:a}: ["p(50)<200us"]`.
    pub thresholds: BTreeMap<String, Vec<String>>,
    /// Results in three bands, by metric: a target, and a wider bound beyond which they are
    /// critical. `response_time: ["p(95)<10ms|20ms"]`
    pub bands: BTreeMap<String, Vec<String>>,
    /// How much worse a figure may get from one version of the target to the next, for `plimsoll
    /// compare`, by figure: `ttft.p99: 10%`, `throughput: 2%`, `error_rate: 0.1pp`.
    pub gate: BTreeMap<String, String>,
    /// Labels of the run in its Prometheus figures, like `environment: staging`.
    pub labels: BTreeMap<String, String>,
    /// Defaults of all scenarios; without `scenarios`, the only scenario of the run.
    #[serde(flatten, skip_serializing)]
    pub defaults: Behaviour,
    /// The scenario mix: each conversation belongs to one of them, chosen by weight.
    pub scenarios: Vec<ScenarioFile>,
}

impl ProfileFile {
    /// Changes every path of a file that the profile names; with each comes the scenario that names
    /// it, if one does, and its key there.
    pub(crate) fn change_files(
        &mut self,
        mut change: impl FnMut(Option<usize>, &'static str, &mut PathBuf),
    ) {
        let named = [
            ("trace.file", self.trace.as_mut().map(|trace| &mut trace.file)),
            ("tokenizer", self.tokenizer.as_mut()),
            ("unix_socket", self.unix_socket.as_mut()),
            ("tls.ca_file", self.tls.ca_file.as_mut()),
            ("tls.cert_file", self.tls.cert_file.as_mut()),
            ("tls.key_file", self.tls.key_file.as_mut()),
        ];
        for (key, file) in named {
            if let Some(file) = file {
                change(None, key, file);
            }
        }
        for (index, scenario) in self.scenarios.iter_mut().enumerate() {
            let Behaviour { http, content, .. } = &mut scenario.behaviour;
            if let Some(file) = http.as_mut().and_then(|http| http.body_file.as_mut()) {
                change(Some(index), "http.body_file", file);
            }
            if let Some(Content::File { file, .. }) = content {
                change(Some(index), "content.file", file);
            }
        }
    }
}

/// One weighted kind of user behaviour. Keys that it leaves out are as at the top of the profile.
#[derive(Clone, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioFile {
    /// Name in reports, unique in the profile. Left out: `scenario-` and its number, from 1.
    pub name: Option<String>,
    /// Share of all conversations, relative to the other weights.
    #[default(1.0)]
    #[schemars(range(min = 0))]
    pub weight: f64,
    /// Name of the model that this scenario asks, in place of the profile's.
    pub model: Option<String>,
    /// Headers of this scenario's requests, added to those of the profile.
    pub headers: BTreeMap<String, String>,
    /// The rest.
    #[serde(flatten)]
    pub behaviour: Behaviour,
}

/// The behaviour of a scenario; at the top of the profile, the default of all scenarios.
#[derive(Clone, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Behaviour {
    /// Wire format.
    pub protocol: Dialect,
    /// Requests of one conversation; each answer becomes part of the next request. With tool
    /// servers and agents: the steps of one session, without its handshake and deletion.
    #[default(1)]
    #[schemars(range(min = 1))]
    pub turns: u16,
    /// Whether responses are streamed. Those of the `websocket` protocol always are.
    pub stream: bool,
    /// System prompt: a text, or `{approx_tokens: N}` for synthetic text of that length.
    pub system: Option<SystemPrompt>,
    /// The user's side of the dialogue.
    pub content: Option<Content>,
    /// Most output tokens per turn.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// The same, drawn for each turn, in place of `max_tokens`: like `{mean: 150, stddev: 50}`.
    pub output_tokens: Option<LengthSpec>,
    /// The member of an `openai-chat` request that limits the output; reasoning models refuse
    /// `max_tokens`.
    pub max_tokens_field: TokenLimit,
    /// What every tool call of the model is answered with, before the user's next prompt.
    #[default = "ok"]
    pub tool_result: String,
    /// Pause of a virtual user between two requests, and of an arrival between its turns: a
    /// duration, or a distribution of durations.
    pub think_time: Option<DurationSpec>,
    /// Whether prompts may hit caches between here and the model.
    pub cache_mode: CacheMode,
    /// Prefixes that several conversations share.
    pub prefix_pool: Option<PrefixPool>,
    /// Further members of the request's JSON object, like `temperature`.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// The request of the `http` protocol.
    pub http: Option<HttpSpec>,
    /// The sessions of the `mcp` protocol, with tool servers.
    pub mcp: Option<McpSpec>,
    /// The conversations of the `a2a` protocol, with agents.
    pub a2a: Option<A2aSpec>,
    /// The handshake of the `websocket` protocol.
    pub websocket: Option<WebSocketSpec>,
    /// The expected policy decision for every turn. The report compares it with the target's
    /// decision.
    pub expect: Option<ExpectedDecision>,
    /// Label that groups scenarios in the report, like `sql_injection`.
    pub category: Option<String>,
    /// How the target's policy decision is read from its response. Left out: 2xx is allow, 403
    /// block, 429 rate-limited.
    pub policy_decision: PolicyDecisionSpec,
    /// Makes the scenario an agent: the tools that the model calls are called at the target, and
    /// their results are fed back, until the model calls none or a bound is reached.
    pub agent: Option<AgentSpec>,
}
