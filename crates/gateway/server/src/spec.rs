//! The configuration file: every key, its meaning and its default.
//!
//! A section that is present is a layer that is switched on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::unit::{Size, Span};

/// The configuration file of a gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// What the gateway calls itself in `/admin/build` and `/health`.
    pub name: String,
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that serve, each with an event loop of its own.
    pub workers: u16,
    /// Bounds of what a client may send.
    pub server: ServerSpec,
    /// TLS with HTTP/1.1 and HTTP/2 by ALPN. Left out: plain TCP, HTTP/2 by prior knowledge.
    pub tls: Option<TlsSpec>,
    /// Shape of the answers to refused requests.
    pub envelope: EnvelopeSpec,
    /// Paths (exact, or a prefix that ends in `/*`) that neither a key nor a limit guards.
    pub open: Vec<String>,
    /// Layer: a request id on every request and answer.
    pub request_id: Option<RequestIdSpec>,
    /// Layer: a line for every request.
    pub access_log: Option<AccessLogSpec>,
    /// `/admin/build` and `/admin/reload`.
    pub admin: bool,
    /// Layer: Prometheus metrics of every request, at `/metrics`.
    pub metrics: Option<Empty>,
    /// Layer: keys.
    pub auth: Option<AuthSpec>,
    /// Layer: tenants.
    pub tenant: Option<TenantSpec>,
    /// Layer: rate limits.
    pub rate_limits: Vec<RateLimitSpec>,
    /// Layer: personal data is taken out of answers, streams too.
    pub scrub: Option<Empty>,
    /// Layer: the policy.
    pub policy: Option<PolicySpec>,
    /// Layer: exact-match cache of LLM answers.
    pub cache: Option<CacheSpec>,
    /// Layer: budgets of the tenants.
    pub budgets: Option<BudgetSpec>,
    /// Layer: a row for every request.
    pub audit: Option<AuditSpec>,
    /// Where limits, budgets and cached answers live.
    pub store: StoreSpec,
    /// The servers behind the gateway.
    pub upstreams: BTreeMap<String, UpstreamSpec>,
    /// What is served, and from where.
    pub routes: Vec<RouteSpec>,
    /// Faults that are planted.
    pub faults: FaultSpec,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            name: "gateway".to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8_080)),
            workers: 1,
            server: ServerSpec::default(),
            tls: None,
            envelope: EnvelopeSpec::Typed,
            open: ["/health", "/health/*", "/metrics", "/admin/*"].map(str::to_owned).into(),
            request_id: None,
            access_log: None,
            admin: true,
            metrics: None,
            auth: None,
            tenant: None,
            rate_limits: Vec::new(),
            scrub: None,
            policy: None,
            cache: None,
            budgets: None,
            audit: None,
            store: StoreSpec::default(),
            upstreams: BTreeMap::new(),
            routes: Vec::new(),
            faults: FaultSpec::default(),
        }
    }
}

/// A layer without settings: `{}`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Empty {}

/// Bounds of what a client may send.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// Largest head of a request.
    pub header_bytes: Size,
    /// Most headers of a request.
    pub headers: usize,
    /// Largest body of a request, enforced while it arrives.
    pub body_bytes: Size,
    /// A connection on which no whole head arrives in this time is closed; so is an idle one.
    pub header_timeout: Span,
    /// A body must be complete in this time.
    pub body_timeout: Span,
    /// Most connections at once for each worker; the next ones wait in the kernel's queue.
    pub connections: usize,
    /// Time that requests in flight have when the gateway stops.
    pub drain: Span,
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            header_bytes: Size(16 << 10),
            headers: 64,
            body_bytes: Size(1 << 20),
            header_timeout: Span::secs(60),
            body_timeout: Span::secs(30),
            connections: 20_000,
            drain: Span::secs(10),
        }
    }
}

/// Certificate and key, PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Shape of the answers to refused requests. LLM routes answer in the envelope of the caller's dialect.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeSpec {
    /// `{"error":{"type":...,"message":...}}`.
    #[default]
    Typed,
    /// The message alone, as text.
    Plain,
}

/// Where the request id is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestIdSpec {
    /// Header that is echoed, or made where the client sent none.
    pub header: String,
}

impl Default for RequestIdSpec {
    fn default() -> Self {
        Self { header: "x-request-id".to_owned() }
    }
}

/// Where lines of the access log go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessLogSpec {
    /// The file, which is appended to.
    pub path: PathBuf,
}

/// Who may come in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthSpec {
    /// Header with the key; in `authorization` it stands behind `Bearer`.
    #[serde(default = "authorization")]
    pub header: String,
    /// The keys.
    pub keys: Vec<KeySpec>,
}

/// One key. The gateway keeps its digest only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySpec {
    /// Name of the consumer.
    pub name: String,
    /// SHA-256 of the key, in hexadecimal.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The key itself, or `${NAME}` for an environment variable.
    #[serde(default)]
    pub key: Option<Secret>,
    /// Tenant that the consumer belongs to.
    #[serde(default)]
    pub tenant: Option<String>,
    /// What it may do; empty for everything.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// A text that is shown nowhere. `${NAME}` stands for an environment variable.
#[derive(Clone, Deserialize)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Secret {
    /// The text with its variable filled in; the variable's name if there is no such one.
    ///
    /// # Errors
    /// The name of a variable that is not set.
    pub fn reveal(&self) -> Result<String, String> {
        match self.0.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            None => Ok(self.0.clone()),
            Some(name) => std::env::var(name).map_err(|_| name.to_owned()),
        }
    }
}

/// Where the tenant is named.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantSpec {
    /// Header with the tenant's name.
    pub header: String,
    /// Claim of a bearer token (JWT, HS256) with the tenant's name.
    pub claim: Option<String>,
    /// Secret that such tokens are signed with.
    pub secret: Option<Secret>,
    /// Is a request without a tenant refused?
    pub required: bool,
}

impl Default for TenantSpec {
    fn default() -> Self {
        Self { header: "x-tenant-id".to_owned(), claim: None, secret: None, required: false }
    }
}

/// A rate limit.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimitSpec {
    /// Who shares the limit.
    pub per: Per,
    /// Requests in a window; 0 for no limit at all.
    pub requests: u32,
    /// Length of the window.
    #[serde(default = "minute")]
    pub window: Span,
    /// How requests are counted.
    #[serde(default)]
    pub algorithm: AlgorithmSpec,
}

/// Who shares a rate limit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Everybody.
    Global,
    /// The requests of a tenant.
    Tenant,
    /// The requests with a key.
    Key,
    /// The requests from an address.
    Address,
}

/// How requests are counted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AlgorithmSpec {
    /// Sliding window: this window's count and the part of the last one that still reaches in.
    #[default]
    Sliding,
    /// The exact log of the last window.
    Log,
    /// Fixed windows.
    Fixed,
    /// Token bucket.
    Bucket,
}

/// What the policy does about each category.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySpec {
    /// Rules that replace the built-in ones.
    pub rules: Option<PathBuf>,
    /// Is `POST /api/request` served?
    pub endpoint: bool,
    /// The actions, by category.
    pub actions: plimsoll_gateway_policy::Actions,
}

/// The cache of LLM answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSpec {
    /// How long an answer is kept.
    pub ttl: Span,
    /// Most bytes that are kept.
    pub bytes: Size,
    /// Header by which a request passes the cache by.
    pub bypass_header: String,
}

impl Default for CacheSpec {
    fn default() -> Self {
        Self {
            ttl: Span::secs(600),
            bytes: Size(256 << 20),
            bypass_header: "x-cache-bypass".to_owned(),
        }
    }
}

/// What tenants may spend.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSpec {
    /// What is counted.
    pub unit: BudgetUnit,
    /// Price of a thousand prompt tokens, in US dollars; for `unit: usd`.
    pub usd_per_1k_prompt: f64,
    /// Price of a thousand completion tokens, in US dollars; for `unit: usd`.
    pub usd_per_1k_completion: f64,
    /// What a tenant without an entry of its own may spend in a window.
    pub default: f64,
    /// When the spending starts anew.
    pub window: Span,
    /// What single tenants may spend.
    pub tenants: BTreeMap<String, f64>,
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self {
            unit: BudgetUnit::Tokens,
            usd_per_1k_prompt: 0.001,
            usd_per_1k_completion: 0.002,
            default: 1_000_000.0,
            window: Span::secs(86_400),
            tenants: BTreeMap::new(),
        }
    }
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// Prompt and completion tokens.
    #[default]
    Tokens,
    /// US dollars.
    Usd,
}

/// The row for every request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSpec {
    /// File of JSON lines, which is appended to.
    pub path: Option<PathBuf>,
    /// URL of a `ClickHouse` server and table, `http://[USER:PASSWORD@]HOST[:PORT]/[DATABASE.]TABLE`, instead of a file.
    pub clickhouse: Option<String>,
    /// Rows that may wait.
    pub queue: usize,
    /// Rows that are written at once.
    pub batch: usize,
    /// How long a row waits for others at most.
    pub flush: Span,
    /// What happens to a row when the queue is full.
    pub when_full: WhenFull,
}

impl Default for AuditSpec {
    fn default() -> Self {
        Self {
            path: None,
            clickhouse: None,
            queue: 65_536,
            batch: 2_048,
            flush: Span::millis(100),
            when_full: WhenFull::Drop,
        }
    }
}

/// What happens to a row when the queue is full.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It is dropped, and counted.
    #[default]
    Drop,
    /// Its request waits.
    Block,
}

/// Where limits, budgets and cached answers live.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSpec {
    /// URL of a Redis server. Left out: in this process.
    pub redis: Option<String>,
    /// What happens when Redis is gone.
    pub on_loss: FailureMode,
    /// How long an operation on Redis may take.
    pub timeout: Span,
}

impl Default for StoreSpec {
    fn default() -> Self {
        Self { redis: None, on_loss: FailureMode::Open, timeout: Span::millis(50) }
    }
}

/// What happens when the store is gone.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// Requests are let through.
    #[default]
    Open,
    /// Requests are refused with 503.
    Closed,
}

/// Servers that do the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamSpec {
    /// `HOST:PORT` of each.
    pub addresses: Vec<String>,
    /// The dialect that they speak, for LLM routes.
    #[serde(default)]
    pub dialect: DialectSpec,
    /// Their key, instead of the client's.
    #[serde(default)]
    pub key: Option<Secret>,
    /// Which one gets a request.
    #[serde(default)]
    pub balance: Balance,
    /// Time limit of a connection's set-up.
    #[serde(default = "two_seconds")]
    pub connect_timeout: Span,
    /// Time limit until an answer begins.
    #[serde(default = "minute")]
    pub timeout: Span,
    /// Most time between two pieces of an answer.
    #[serde(default = "minute")]
    pub idle_timeout: Span,
    /// Second attempts.
    #[serde(default)]
    pub retry: Option<RetrySpec>,
    /// Active health checks.
    #[serde(default)]
    pub health: Option<HealthSpec>,
    /// Circuit breaker of each address.
    #[serde(default)]
    pub breaker: Option<BreakerSpec>,
}

/// What an LLM upstream speaks.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DialectSpec {
    /// OpenAI's.
    #[default]
    Openai,
    /// Anthropic's.
    Anthropic,
}

/// Which address of an upstream gets a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// Each in turn.
    #[default]
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastLoaded,
    /// Any.
    Random,
}

/// Second attempts, for requests whose body is in memory and whose answer has not begun.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySpec {
    /// Attempts in all.
    pub attempts: u32,
    /// Retries as a share of all requests, beyond ten: a broken upstream is not hammered.
    pub budget: f64,
    /// Pause before the second attempt; it doubles for each further one.
    pub backoff: Span,
}

impl Default for RetrySpec {
    fn default() -> Self {
        Self { attempts: 2, budget: 0.2, backoff: Span::millis(10) }
    }
}

/// Active health checks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HealthSpec {
    /// What is asked for; a 2xx is healthy.
    pub path: String,
    /// How often.
    pub interval: Span,
    /// Time limit of one check.
    pub timeout: Span,
    /// Failures in a row after which an address gets no more requests.
    pub fall: u32,
    /// Successes in a row after which it does again.
    pub rise: u32,
}

impl Default for HealthSpec {
    fn default() -> Self {
        Self {
            path: "/health".to_owned(),
            interval: Span::secs(5),
            timeout: Span::secs(2),
            fall: 3,
            rise: 2,
        }
    }
}

/// A circuit breaker.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerSpec {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open, until one request is let through to try.
    pub open: Span,
}

impl Default for BreakerSpec {
    fn default() -> Self {
        Self { failures: 5, open: Span::secs(5) }
    }
}

/// A route.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// Name in metrics and logs.
    pub name: String,
    /// Path: exact, with parameters (`/v1/items/{id}`), or a prefix that ends in `/*`.
    pub path: String,
    /// Upstream that answers.
    #[serde(default)]
    pub upstream: Option<String>,
    /// A fixed answer instead of an upstream's.
    #[serde(default)]
    pub respond: Option<RespondSpec>,
    /// What is taken off the front of the path.
    #[serde(default)]
    pub strip: Option<String>,
    /// Consumers that may use it; empty for all.
    #[serde(default)]
    pub consumers: Vec<String>,
    /// Scope that a key needs.
    #[serde(default)]
    pub scope: Option<String>,
    /// Time limit until an answer begins, instead of the upstream's.
    #[serde(default)]
    pub timeout: Option<Span>,
    /// Does it carry chat completions or messages, which are translated, scanned, cached and budgeted?
    #[serde(default)]
    pub llm: bool,
    /// Are `WebSocket`s passed through?
    #[serde(default)]
    pub websocket: bool,
}

/// A fixed answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RespondSpec {
    /// Status.
    #[serde(default = "ok")]
    pub status: u16,
    /// Content type.
    #[serde(default = "json")]
    pub content_type: String,
    /// Body.
    #[serde(default)]
    pub body: String,
}

/// Faults that are planted: shares are between 0 and 1, of the requests that an upstream would answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub struct FaultSpec {
    /// Delay of every request, exact to microseconds at the price of CPU time.
    pub delay: Span,
    /// Share answered with 500.
    pub error_share: f64,
    /// Share whose connection is broken off in the answer.
    pub reset_share: f64,
    /// Share of the answers that stop for `stall` after their first piece.
    pub stall_share: f64,
    /// How long such an answer stops.
    pub stall: Span,
    /// The whole process stops.
    pub pause: Option<PauseSpec>,
    /// Memory that every request leaves behind.
    pub leak_bytes: Size,
    /// Streams are held back until they are complete.
    pub buffer_streams: bool,
    /// The policy lets everything pass, and says nothing about it.
    pub policy_off: bool,
    /// Rate limits let everything pass.
    pub limiter_open: bool,
    /// Share of the audit rows that vanish without being counted.
    pub audit_drop_share: f64,
    /// Seed of the draws.
    pub seed: u64,
}

/// The whole process stops now and then.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// From one stop to the next.
    pub every: Span,
    /// Length of a stop.
    #[serde(rename = "for")]
    pub length: Span,
}

fn authorization() -> String {
    "authorization".to_owned()
}

const fn minute() -> Span {
    Span::secs(60)
}

const fn two_seconds() -> Span {
    Span::secs(2)
}

const fn ok() -> u16 {
    200
}

fn json() -> String {
    "application/json".to_owned()
}
