//! The keys of a profile: type, default and description of each. The JSON Schema is generated from
//! this file.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use plimsoll_measure::{Nanos, RequestBounds};
use plimsoll_plan::{
    BudgetPlan, ConnectionLifetime, HttpPlan, HttpVersion, Instrument, Limits, Overflow, Replies,
    ResponseHeaders, RetryAfter, TlsPlan,
};
use plimsoll_protocol::{Dialect, TokenLimit};
use plimsoll_schedule::{Arrivals, PairMode, PairOrder, Stages};
use plimsoll_workload::{
    A2aSpec, AgentRole, AgentSpec, CacheMode, Content, DurationSpec, ExpectedDecision, HttpSpec,
    LengthSpec, McpSpec, PolicyDecisionSpec, PrefixPool, ScenarioSpec, SystemPrompt, TraceSpec,
    WebSocketSpec, part_names,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::byte_size::ByteSize;

/// A Plimsoll profile: the load, its content and the target.
///
/// Every key is optional. Durations have a unit (`500ms`, `30s`, `1m30s`). In texts, `${NAME}` and
/// `${NAME:-default}` are replaced by an environment variable, and `$$` by a dollar sign.
#[derive(Clone, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileFile {
    /// Name of the run, in reports and in the name of its folder. Default: the file's name.
    pub name: Option<String>,
    /// Base URL of the target: scheme, host, port, an optional path prefix, and an optional query
    /// that is added to every request, such as `?api-version=2024-06-01`.
    pub target: Option<String>,
    /// API key of the target, sent as `Authorization: Bearer`, or as `x-api-key` with Anthropic's
    /// protocol.
    pub key: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Targets that `plimsoll versus` compares. `plimsoll run` uses `target`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetFile>,
    /// Options of `plimsoll versus`.
    pub versus: VersusFile,
    /// Seed of all random numbers: the same profile and seed give the same arrivals and prompts.
    #[default(1)]
    pub seed: u64,
    /// Load shapes, run one after another. `10:30s` is 10 virtual users for 30 seconds, `@100:30s`
    /// is 100 arrivals per second, `@10..100:60s` is a ramp, and `trace:60s` replays the arrivals
    /// of the trace. A leading `w` marks a warm-up.
    #[schemars(with = "Option<String>", extend("format" = "stages"))]
    pub stages: Option<Stages>,
    /// Spacing of the arrivals in `@` stages.
    pub arrivals: Arrivals,
    /// Headers of every request. Headers of a scenario are added.
    pub headers: BTreeMap<String, String>,
    /// Response headers to read: cache states, upstream retries, server times, and others to record
    /// unchanged.
    pub response_headers: ResponseHeaders,
    /// Time limit of one request, from its dispatch to the end of its response.
    #[default(Limits::DEFAULT.timeout)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub timeout: Nanos,
    /// Time limit of opening a connection.
    #[default(Limits::DEFAULT.connect_timeout)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub connect_timeout: Nanos,
    /// Time to wait for responses after the last stage.
    #[default(Limits::DEFAULT.drain)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub drain: Nanos,
    /// Maximum number of requests in flight in `@` and `trace` stages; in a comparison, per target.
    #[default(Limits::DEFAULT.max_in_flight)]
    #[schemars(range(min = 1))]
    pub max_in_flight: u64,
    /// Treatment of an arrival beyond `max_in_flight`.
    pub overflow: Overflow,
    /// Ends the run after this many requests in measured stages. Warm-up does not count.
    #[schemars(range(min = 1))]
    pub max_requests: Option<u64>,
    /// Ends the run when this many tokens, or this much money, are spent. Requests still in flight
    /// may exceed the limit.
    pub budget: Option<BudgetPlan>,
    /// Ends the run when more than this share of the requests (0 to 1) failed, as counted by
    /// `error_rate` and including warm-up. Checked every second, once 100 requests have ended.
    #[schemars(range(min = 0, max = 1))]
    pub abort_on_error_rate: Option<f64>,
    /// Lets a run pass in which 45 % of the requests failed, and continues sending to a target
    /// without a successful response for 10 seconds. A comparison judges each target anyway.
    pub allow_failures: bool,
    /// How a virtual user reacts when a 429 or 503 asks it to wait (`Retry-After`). Arrivals of `@`
    /// stages do not wait.
    pub retry_after: RetryAfter,
    /// Maximum size of a response body, such as `16MiB`, or a number of bytes; for a compressed
    /// body, its decoded size. Also limits a single event of a stream.
    #[default(ByteSize::new(Limits::DEFAULT.max_body))]
    pub max_body: ByteSize,
    /// Number of worker threads. Default: one per core available to the process.
    #[schemars(range(min = 1))]
    pub workers: Option<u16>,
    /// Version of HTTP.
    pub http_version: HttpVersion,
    /// HTTP/2: maximum number of concurrent requests per connection. A worker opens another
    /// connection when all are full.
    #[default(HttpPlan::DEFAULT.streams_per_connection)]
    #[schemars(range(min = 1))]
    pub streams_per_connection: u32,
    /// HTTP/1.1: number of requests after which a connection is closed, drawn for each connection
    /// between `min` and `max`. Default: connections stay open as long as the target keeps them.
    pub requests_per_connection: Option<ConnectionLifetime>,
    /// Maximum number of connections to each target in `@` and `trace` stages. A request that finds
    /// none free waits for one; the wait is `connection_wait`, and part of the response time.
    /// Default: as many as needed, up to `max_in_flight`.
    #[schemars(range(min = 1))]
    pub max_connections: Option<u64>,
    /// HTTP/1.1: maximum idle time of a connection that is reused. The default is below 5 s, after
    /// which many servers close idle connections.
    #[default(HttpPlan::DEFAULT.idle_limit)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub idle_limit: Nanos,
    /// Whether to retry a request once if the target closed a reused connection without any
    /// response, as browsers and proxies do. These requests are counted as `retries`, and their
    /// times include the first attempt.
    #[default(HttpPlan::DEFAULT.retry_reused)]
    pub retry_reused: bool,
    /// Maximum number of redirects to follow per request, including redirects to other servers;
    /// credentials are sent to the target only. Times end with the last response. 0: a redirect is
    /// a failure.
    pub redirects: u8,
    /// Local addresses of connections, used in turn; each address has its own local ports. Default:
    /// the kernel chooses.
    pub bind: Vec<IpAddr>,
    /// Redirected connections, `HOST1:PORT1:HOST2:PORT2`: connections to the first address go to
    /// the second. An empty part means any, or the same. Names in requests and certificates do not
    /// change.
    #[schemars(extend("items" = {"type": "string", "format": "connect to"}))]
    pub connect_to: Vec<String>,
    /// Unix socket to connect to instead of TCP. `target` still defines the host and the scheme.
    pub unix_socket: Option<PathBuf>,
    /// Proxy to use, `http://HOST:PORT` or `socks5://HOST:PORT`, with `USER:PASSWORD@` before the
    /// host if it requires credentials.
    #[schemars(extend("format" = "proxy"))]
    pub proxy: Option<String>,
    /// Whether to use the kernel's receive time stamps if available; otherwise responses are
    /// stamped when they are read.
    #[default(Instrument::DEFAULT.kernel_timestamps)]
    pub kernel_timestamps: bool,
    /// Time before an intended start at which a worker stops sleeping and spins. More is more
    /// precise, but uses more CPU time. At most a tenth of each wait is spent spinning.
    #[default(Instrument::DEFAULT.spin)]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub spin: Nanos,
    /// Whether to pin each worker to its own CPU, among those available to the process. Ignored
    /// unless there is more than one, and enough for all workers. Useful if the target does not
    /// share these CPUs.
    pub pin_workers: bool,
    /// Records the arrival time of each content event of a stream in `results.jsonl`, for one
    /// conversation in N; 0 for none. Conversations are selected by their ids, so that runs with
    /// the same seed select the same ones.
    pub event_times: u32,
    /// TLS: verification of an `https` target, and session resumption.
    pub tls: TlsPlan,
    /// Path of a local `tokenizer.json` that counts the tokens of content with a given size.
    /// Default: tokens are estimated.
    pub tokenizer: Option<PathBuf>,
    /// Recorded traffic, for `trace` stages.
    pub trace: Option<TraceSpec>,
    /// Bounds on its own times that a good request meets, for `goodput` and `good_share`:
    /// `ttft<500ms, tpot<50ms`
    #[schemars(with = "Option<String>", extend("format" = "request bounds"))]
    pub goodput: Option<RequestBounds>,
    /// Thresholds on the results, by metric: `ttft: ["p(95)<500ms"]`. In a comparison also on
    /// overhead over the reference: `added.ttft{target:a}: ["p(50)<200us"]`.
    pub thresholds: BTreeMap<String, Vec<String>>,
    /// Results in three bands, by metric: a target, and a wider bound beyond which they are
    /// critical. `response_time: ["p(95)<10ms|20ms"]`
    pub bands: BTreeMap<String, Vec<String>>,
    /// Allowed regression of a figure from one version of the target to the next, for `plimsoll
    /// compare`: `ttft.p99: 10%`, `throughput: 2%`, `error_rate: 0.1pp`.
    pub gate: BTreeMap<String, String>,
    /// Labels of the run in its Prometheus metrics, such as `environment: staging`.
    pub labels: BTreeMap<String, String>,
    /// Defaults of all scenarios; without `scenarios`, the only scenario of the run.
    #[serde(flatten, skip_serializing)]
    pub defaults: Behaviour,
    /// The scenario mix: each conversation belongs to one of them, chosen by weight.
    pub scenarios: Vec<ScenarioFile>,
}

impl ProfileFile {
    /// Changes every path in the profile. `change` also receives the scenario with the path, if
    /// any, and the key.
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

/// A weighted kind of user behaviour. Missing keys are inherited from the top level of the profile.
#[derive(Clone, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioFile {
    /// Name in reports, unique in the profile. Default: `scenario-` and its number, from 1.
    pub name: Option<String>,
    /// Share of all conversations, relative to the other weights.
    #[default(1.0)]
    #[schemars(range(min = 0))]
    pub weight: f64,
    /// Model for this scenario, instead of the profile's.
    pub model: Option<String>,
    /// Headers of this scenario's requests, added to the profile's.
    pub headers: BTreeMap<String, String>,
    /// Inherited keys.
    #[serde(flatten)]
    pub behaviour: Behaviour,
}

/// The behaviour of a scenario; at the top level of the profile, the default of all scenarios.
#[derive(Clone, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Behaviour {
    /// Wire format.
    pub protocol: Dialect,
    /// Number of requests per conversation; each response becomes part of the next request. With
    /// tool servers and agents: the steps of one session, without its handshake and deletion.
    #[default(1)]
    #[schemars(range(min = 1))]
    pub turns: u16,
    /// Whether to stream responses. With the `websocket` protocol they are always streamed.
    pub stream: bool,
    /// System prompt: a text, or `{approx_tokens: N}` for synthetic text of that length.
    pub system: Option<SystemPrompt>,
    /// The user's part of the dialogue.
    pub content: Option<Content>,
    /// Maximum number of output tokens per turn.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Like `max_tokens`, but drawn for each turn: `{mean: 150, stddev: 50}`.
    pub output_tokens: Option<LengthSpec>,
    /// Name of the output token limit in an `openai-chat` request; reasoning models reject
    /// `max_tokens`.
    pub max_tokens_field: TokenLimit,
    /// Result of every tool call of the model, sent before the user's next prompt.
    #[default = "ok"]
    pub tool_result: String,
    /// Pause of a virtual user between two requests, and of an arrival between its turns: a
    /// duration, or a distribution of durations.
    pub think_time: Option<DurationSpec>,
    /// Whether prompts may hit caches on the way to the model.
    pub cache_mode: CacheMode,
    /// Prefixes shared by several conversations.
    pub prefix_pool: Option<PrefixPool>,
    /// Further members of the request's JSON object, such as `temperature`.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// The request of the `http` protocol.
    pub http: Option<HttpSpec>,
    /// The sessions of the `mcp` protocol, with tool servers.
    pub mcp: Option<McpSpec>,
    /// The conversations of the `a2a` protocol, with agents.
    pub a2a: Option<A2aSpec>,
    /// The handshake of the `websocket` protocol.
    pub websocket: Option<WebSocketSpec>,
    /// Expected policy decision for every turn. The report compares it with the target's decision.
    pub expect: Option<ExpectedDecision>,
    /// Label that groups scenarios in the report, such as `sql_injection`.
    pub category: Option<String>,
    /// How to derive the target's policy decision from its response. Default: 2xx is allow, 403
    /// block, 429 rate-limited.
    pub policy_decision: PolicyDecisionSpec,
    /// Makes the scenario an agent: it calls the tools that the model requests at the target and
    /// returns their results, until the model requests none or a limit is reached.
    pub agent: Option<AgentSpec>,
}

/// A target that `plimsoll versus` compares with the others.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetFile {
    /// Name in reports, unique among the targets: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Base URL, as in `target`.
    pub url: String,
    /// Part in the comparison. The others are compared with the `direct` one.
    #[serde(default)]
    pub role: RoleFile,
    /// API key. Default: the profile's.
    pub key: Option<String>,
    /// Name of the model. Default: the profile's.
    pub model: Option<String>,
    /// Wire format of every scenario. Default: the scenarios' own.
    pub protocol: Option<Dialect>,
    /// Headers of its requests, added to the profile's.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its process on this host, whose CPU and memory use is reported: `pid:4711`, or `:8080` by
    /// its listening port.
    pub watch: Option<String>,
}

/// The part of a target in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleFile {
    /// A compared target.
    #[default]
    Gateway,
    /// The upstream itself, without a gateway: the reference for the others.
    Direct,
    /// Another path to the upstream, which must not differ from `direct`: if it does, the
    /// comparison is invalid. Default: `versus.control`.
    Control,
}

/// Options of a comparison by `plimsoll versus`.
#[derive(Clone, Debug, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VersusFile {
    /// How the targets share the time. `spread`: every request goes to all of them, one after
    /// another, a fixed time apart. `together`: to all of them at once, for targets on different
    /// hosts. `turns`: one target is loaded alone for some seconds, then the next. Virtual users:
    /// each target has its own, with the same conversations, side by side or by turns.
    pub schedule: PairMode,
    /// Order of the targets: `random` and balanced, or `fixed` to measure the effect of the order.
    pub order: PairOrder,
    /// `spread`: maximum time between the requests of a block. It is shorter if the requests of all
    /// targets are then evenly spaced.
    #[default(Nanos::from_millis(50))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub gap: Nanos,
    /// `turns`: minimum time for which one target is loaded alone. Its first second, or at most a
    /// fifth of it, does not count.
    #[default(Nanos::from_secs(5))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub window: Nanos,
    /// `spread` and `together`: time for which each target is loaded alone, ten times per stage, to
    /// measure interference between targets. It should be longer than a response. Shortened if it
    /// would take more than a third of the stage; `0s` disables it.
    #[default(Nanos::from_secs(1))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub alone: Nanos,
    /// Whether to load the reference twice, under two names, as a self-check: a difference between
    /// the two shows that the measurement is wrong. The second copy doubles the load of the
    /// reference's process, which makes it faster if a warmer process is faster, and slower near
    /// its limit. A target with `role: control` and its own process has no such effect.
    pub control: bool,
    /// Source of the model's answers in later turns of a chat: `canned` texts, the same for all
    /// targets, or the `live` answers, which differ between targets.
    pub replies: Replies,
    /// Name of the reference, with which the others are compared. Default: the target with the role
    /// `direct`, or else the first.
    pub reference: Option<String>,
    /// Margin by which a target may be worse than the best one, as a share: 0.05 is 5 %. Beyond it,
    /// the exit code is 1. Default: a difference is a result, not a failure.
    #[schemars(range(min = 0))]
    pub margin: Option<f64>,
    /// Whether to end the run as soon as it is decided which target is slower; or, with a `margin`,
    /// that they differ by less. Intervals are then always-valid, and about 1.5 times as wide. For
    /// `spread` and `together`, and a single round.
    pub decide: bool,
    /// Number of repetitions of the whole comparison. The result is the mean over these rounds.
    #[default(1)]
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// Time from the start of one round to the start of the next. Default: no pause between rounds.
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub every: Option<Nanos>,
}

// Converts scenarios of a profile for the workload.

/// Name of a scenario: as given, or by its position.
pub(crate) fn scenario_name(index: usize, file: &ScenarioFile) -> String {
    file.name.clone().unwrap_or_else(|| default_name(index))
}

/// Names under which a scenario's requests are counted: its own, and its parts' names.
pub(crate) fn scenario_names(index: usize, file: &ScenarioFile) -> Vec<String> {
    let name = scenario_name(index, file);
    let parts = file.behaviour.agent.iter().flat_map(|agent| {
        let count = 1 + usize::from(agent.approve.is_some());
        part_names(&name).into_iter().take(count)
    });
    let parts: Vec<_> = parts.collect();
    std::iter::once(name).chain(parts).collect()
}

/// Default name of the scenario at a position, from 0.
pub(crate) fn default_name(index: usize) -> String {
    format!("scenario-{}", index + 1)
}

/// The scenarios with every default filled in.
pub(crate) fn scenarios(files: Vec<ScenarioFile>) -> Vec<ScenarioSpec> {
    files.into_iter().enumerate().map(|(index, file)| scenario(index, file)).collect()
}

/// A scenario with every default filled in.
pub(crate) fn scenario(index: usize, file: ScenarioFile) -> ScenarioSpec {
    let name = scenario_name(index, &file);
    let Behaviour { protocol, turns, stream, system, content, max_tokens, .. } = file.behaviour;
    let Behaviour { max_tokens_field, tool_result, think_time, cache_mode, .. } = file.behaviour;
    let Behaviour { prefix_pool, parameters, http, mcp, a2a, websocket, .. } = file.behaviour;
    let Behaviour { output_tokens, expect, category, policy_decision, agent, .. } = file.behaviour;
    ScenarioSpec {
        name,
        weight: file.weight,
        model: file.model,
        protocol,
        turns,
        stream: stream || protocol == Dialect::Websocket,
        system,
        // The protocols `http` and `mcp` need no content, so they get an empty text.
        content: content.unwrap_or(Content::Sized { approx_input_tokens: LengthSpec::Fixed(0) }),
        max_tokens,
        output_tokens,
        max_tokens_field,
        tool_result,
        think_time,
        headers: file.headers,
        cache_mode,
        prefix_pool,
        http,
        mcp,
        a2a,
        websocket: websocket.unwrap_or_default(),
        parameters,
        expect,
        category,
        policy_decision,
        agent: agent.map(AgentRole::Agent),
    }
}
