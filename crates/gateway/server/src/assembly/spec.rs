//! The configuration file: every key, its meaning and its default.
//!
//! A layer is enabled by the presence of its section. `docs/reference/gateway.md` is made from the
//! types and comments of this module by its tests.

#[cfg(test)]
pub(crate) mod reference;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Deserialize;
use smart_default::SmartDefault;

pub use plimsoll_gateway_dialect::{Dialect, LimitName};
pub use plimsoll_gateway_inspect::Unread;
pub use plimsoll_gateway_mcp::client::Protocol;
pub use plimsoll_gateway_store::{Algorithm, FailureMode};

pub use crate::config::route::{RespondSpec, RouteSpec};
pub use crate::config::secret::Secret;
pub use crate::config::server::{EnvelopeSpec, ServerSpec, StoreSpec, TlsSpec};
pub use crate::config::upstream::{BreakerSpec, RetrySpec, UpstreamSpec};
pub use crate::layers::admin::AdminSpec;
pub use crate::layers::agent_layer::{
    AgentDirectorySpec, AgentSpec, AgentsSpec, ApprovalsSpec, ChatSpec, SessionsSpec,
};
pub use crate::layers::auth::{AuthSpec, KeySpec};
pub use crate::layers::budget::{BudgetSpec, BudgetUnit};
pub use crate::layers::cache::CacheSpec;
pub use crate::layers::fault_injection::FaultSpec;
pub use crate::layers::metrics::MetricsSpec;
pub use crate::layers::policy::PolicySpec;
pub use crate::layers::rate_limit::{Per, RateLimitSpec};
pub use crate::layers::request_id::RequestIdSpec;
pub use crate::layers::request_log::{AccessLogSpec, AuditSpec, WhenFull};
pub use crate::layers::scrub::ScrubSpec;
pub use crate::layers::tenant::TenantSpec;
pub use crate::layers::tool_server::{ToolServerSpec, ToolsSpec};
use crate::layers::{Layer, Layers, Setup, make};

/// Makes the type of the file: its settings, and a section for each layer.
macro_rules! define_spec {
    ($($(#[$meaning:meta])* $name:ident: $section:ty => $layer:ty,)*) => {
        /// The configuration file of a gateway.
        #[derive(Clone, Debug, Deserialize, SmartDefault)]
        #[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
        #[serde(deny_unknown_fields, default)]
        pub struct Spec {
            /// The gateway's name, shown by `/admin/build` and `/health`.
            #[default("gateway".to_owned())]
            pub name: String,
            /// The address it listens on; port 0 takes a free port.
            #[cfg_attr(test, schemars(with = "String"))]
            #[default(SocketAddr::from(([127, 0, 0, 1], 8_080)))]
            pub listen: SocketAddr,
            /// Number of worker threads; each runs its own event loop.
            #[default(1)]
            pub workers: u16,
            /// Limits on connections and requests.
            pub server: ServerSpec,
            /// TLS with HTTP/1.1 and HTTP/2 by ALPN. Without it: plain TCP, HTTP/2 by prior
            /// knowledge.
            pub tls: Option<TlsSpec>,
            /// Format of error responses. LLM routes use the error format of the caller's dialect
            /// instead.
            #[default(EnvelopeSpec::Typed)]
            pub envelope: EnvelopeSpec,
            /// Paths, exact or a prefix that ends in `/*`, that need no key and count in no limit.
            #[default(["/health", "/health/*", "/metrics", "/admin/*"].map(str::to_owned).into())]
            pub open: Vec<String>,
            /// Administration: `/admin/build` and `/admin/reload`.
            pub admin: AdminSpec,
            /// Addresses (`ADDRESS` or `ADDRESS/BITS`) of proxies whose `x-forwarded-*` headers
            /// name the client of limits, rows and checks. The headers of all others are removed.
            pub trusted_proxies: Vec<String>,
            $($(#[$meaning])* pub $name: Option<$section>,)*
            /// Layer: rate limits.
            pub rate_limits: Vec<RateLimitSpec>,
            /// The store of rate limits, budgets and cached responses.
            pub store: StoreSpec,
            /// The upstreams, by name.
            pub upstreams: BTreeMap<String, UpstreamSpec>,
            /// The routes.
            pub routes: Vec<RouteSpec>,
            /// Injected faults.
            pub faults: FaultSpec,
        }

        impl Spec {
            /// Names of the enabled layers.
            pub fn layers(&self) -> Vec<&'static str> {
                let layers = [
                    $((stringify!($name), self.$name.is_some()),)*
                    ("rate_limits", self.rate_limits.iter().any(|limit| limit.requests > 0)),
                    (
                        "consumer_restriction",
                        self.routes.iter().any(|route| !route.consumers.is_empty()),
                    ),
                    ("tls", self.tls.is_some()),
                ];
                layers.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
            }
        }

        impl Spec {
            /// The settings of the layers that judge or change texts.
            pub(crate) fn text_sections(&self) -> Vec<String> {
                let mut sections = Vec::new();
                $(if <$layer as Layer>::JUDGES_REQUESTS || <$layer as Layer>::CHANGES_ANSWERS {
                    sections.push(format!("{:?}", self.$name));
                })*
                sections
            }
        }

        impl Layers {
            /// The layers whose sections are there. Invalid values are added to `problems`.
            pub(crate) fn new(spec: &Spec, setup: &Setup<'_>, problems: &mut Vec<String>) -> Self {
                Self {
                    $($name: make::<$layer>(spec.$name.as_ref(), setup, problems),)*
                }
            }
        }
    };
}

for_each_layer!(define_spec);

impl Spec {
    /// Names of the injected faults.
    pub fn faults(&self) -> Vec<&'static str> {
        self.faults.names()
    }

    /// The routes to an upstream whose bodies the policy does not read: name and path.
    pub fn unjudged_routes(&self) -> Vec<String> {
        let routes = self.routes.iter().filter(|_| self.policy.is_some());
        let unread = routes.filter(|route| route.upstream.is_some() && !route.llm);
        unread.map(|route| format!("{} ({})", route.name, route.path)).collect()
    }

    /// The settings of a new configuration that a gateway started with this one cannot apply.
    /// Whatever is read only at the start belongs here.
    pub(crate) fn needs_restart(&self, new: &Self) -> Vec<&'static str> {
        let settings = [
            ("listen", self.listen == new.listen),
            ("workers", self.workers == new.workers),
            ("server.connections", self.server.connections == new.server.connections),
            ("tls", self.tls.is_some() == new.tls.is_some()),
            ("admin.listen", self.admin.listen == new.admin.listen),
            ("cache.bytes", new.cache.is_none() || self.cache_bytes() == new.cache_bytes()),
            ("audit", self.audit == new.audit),
            ("access_log", self.access_log == new.access_log),
            ("store", self.store == new.store),
        ];
        settings.into_iter().filter_map(|(name, is_same)| (!is_same).then_some(name)).collect()
    }

    /// Bytes of the cache in this process; none where Redis has it.
    pub(crate) fn cache_bytes(&self) -> u64 {
        let cache = self.cache.as_ref().filter(|_| self.store.redis.is_none());
        cache.map_or(0, |cache| cache.bytes.0)
    }
}
