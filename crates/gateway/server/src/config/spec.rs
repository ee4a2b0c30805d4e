//! The configuration file: every key, its meaning and its default.
//!
//! A layer is enabled by the presence of its section. `docs/reference/gateway.md` is made from the
//! types and comments of this module by its tests.

mod admin;
mod agent_directory;
mod agents;
mod approvals;
mod chat;
mod cors;
mod fault;
mod layer;
#[cfg(test)]
mod reference;
mod route;
mod secret;
mod server;
mod sessions;
mod tools;
mod upstream;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Deserialize;

pub use admin::{AdminSpec, MetricsSpec};
pub use agent_directory::{AgentDirectorySpec, AgentSpec};
pub use agents::AgentsSpec;
pub use approvals::ApprovalsSpec;
pub use chat::ChatSpec;
pub use cors::CorsSpec;
pub use fault::{FaultSpec, PauseSpec};
pub use layer::{
    AccessLogSpec, AlgorithmSpec, AuditSpec, AuthSpec, BudgetSpec, BudgetUnit, CacheSpec, Empty,
    KeySpec, Per, PolicySpec, RateLimitSpec, RequestIdSpec, ScrubSpec, TenantSpec, UnreadSpec,
    WhenFull,
};
pub use route::{RespondSpec, RouteSpec};
pub use secret::Secret;
pub use server::{EnvelopeSpec, FailureMode, ServerSpec, StoreSpec, TlsSpec};
pub use sessions::SessionsSpec;
pub use tools::{ToolProtocolSpec, ToolServerSpec, ToolsSpec};
pub use upstream::{
    Balance, BreakerSpec, DialectSpec, HealthSpec, RetrySpec, TokenLimitSpec, UpstreamSpec,
};

/// The configuration file of a gateway.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// The gateway's name, shown by `/admin/build` and `/health`.
    pub name: String,
    /// The address it listens on; port 0 takes a free port.
    #[cfg_attr(test, schemars(with = "String"))]
    pub listen: SocketAddr,
    /// Number of worker threads; each runs its own event loop.
    pub workers: u16,
    /// Limits on connections and requests.
    pub server: ServerSpec,
    /// TLS with HTTP/1.1 and HTTP/2 by ALPN. Without it: plain TCP, HTTP/2 by prior knowledge.
    pub tls: Option<TlsSpec>,
    /// Addresses and networks (`10.0.0.0/8`) of proxies before the gateway, whose `x-forwarded-*`
    /// count. From everybody else such headers, `forwarded`, `x-real-ip` and the like are removed;
    /// the gateway writes its own.
    pub trusted_proxies: Vec<String>,
    /// Layer: pages of other origins may ask (CORS).
    pub cors: Option<CorsSpec>,
    /// Format of error responses. LLM routes use the error format of the caller's dialect instead.
    pub envelope: EnvelopeSpec,
    /// Paths, exact or a prefix that ends in `/*`, that need no key and count in no limit.
    pub open: Vec<String>,
    /// Layer: a request id on every request and response.
    pub request_id: Option<RequestIdSpec>,
    /// Layer: a log line for every request.
    pub access_log: Option<AccessLogSpec>,
    /// Administration: `/admin/build` and `/admin/reload`. `true` and `false` stand for
    /// `{enabled: ...}`.
    pub admin: AdminSpec,
    /// Layer: Prometheus metrics of every request, at `/metrics`.
    pub metrics: Option<MetricsSpec>,
    /// Layer: authentication by API key.
    pub auth: Option<AuthSpec>,
    /// Layer: tenants.
    pub tenant: Option<TenantSpec>,
    /// Layer: rate limits.
    pub rate_limits: Vec<RateLimitSpec>,
    /// Layer: personal data is removed from responses, streams included.
    pub scrub: Option<ScrubSpec>,
    /// Layer: the policy for texts of requests.
    pub policy: Option<PolicySpec>,
    /// Layer: exact-match cache of LLM responses.
    pub cache: Option<CacheSpec>,
    /// Layer: budgets of the tenants. Needs the section `tenant`.
    pub budgets: Option<BudgetSpec>,
    /// Layer: sessions, approvals and agents.
    pub agents: Option<AgentsSpec>,
    /// Layer: an audit row for every request.
    pub audit: Option<AuditSpec>,
    /// Layer: tools, over REST and MCP.
    pub tools: Option<ToolsSpec>,
    /// The store of rate limits, budgets and cached responses.
    pub store: StoreSpec,
    /// The upstreams, by name.
    pub upstreams: BTreeMap<String, UpstreamSpec>,
    /// The routes.
    pub routes: Vec<RouteSpec>,
    /// Injected faults.
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
            trusted_proxies: Vec::new(),
            cors: None,
            envelope: EnvelopeSpec::Typed,
            open: ["/health", "/health/*", "/metrics", "/admin/*"].map(str::to_owned).into(),
            request_id: None,
            access_log: None,
            admin: AdminSpec::default(),
            metrics: None,
            auth: None,
            tenant: None,
            rate_limits: Vec::new(),
            scrub: None,
            policy: None,
            cache: None,
            budgets: None,
            agents: None,
            audit: None,
            tools: None,
            store: StoreSpec::default(),
            upstreams: BTreeMap::new(),
            routes: Vec::new(),
            faults: FaultSpec::default(),
        }
    }
}

impl Spec {
    /// Names of the enabled layers.
    pub fn layers(&self) -> Vec<&'static str> {
        let layers = [
            ("request_id", self.request_id.is_some()),
            ("access_log", self.access_log.is_some()),
            ("cors", self.cors.is_some()),
            ("metrics", self.metrics.is_some()),
            ("auth", self.auth.is_some()),
            ("consumer_restriction", self.routes.iter().any(|route| !route.consumers.is_empty())),
            ("tenant", self.tenant.is_some()),
            ("rate_limits", self.rate_limits.iter().any(|limit| limit.requests > 0)),
            ("scrub", self.scrub.is_some()),
            ("policy", self.policy.is_some()),
            ("cache", self.cache.is_some()),
            ("budgets", self.budgets.is_some()),
            ("agents", self.agents.is_some()),
            ("audit", self.audit.is_some()),
            ("tools", self.tools.is_some()),
            ("tls", self.tls.is_some()),
        ];
        layers.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }

    /// Names of the injected faults.
    pub fn faults(&self) -> Vec<&'static str> {
        self.faults.names()
    }
}
