//! The layers: what each does with a request or an answer, where its section enables it.
//!
//! From the table below come the keys of the configuration and their meaning in the reference, the
//! names that `/admin/build` and the metrics show, what is made of the sections, the headers that
//! belong to the gateway, and the order in which layers look at a request.

pub(crate) mod admin;
pub(crate) mod agent_layer;
pub(crate) mod auth;
pub(crate) mod budget;
pub(crate) mod counters;
pub(crate) mod document;
pub(crate) mod fault_injection;
pub(crate) mod forwarded;
pub(crate) mod identify;
pub(crate) mod identity;
pub(crate) mod jwt;
pub(crate) mod metrics;
pub(crate) mod offload;
pub(crate) mod policy;
pub(crate) mod rate_limit;
pub(crate) mod request_id;
pub(crate) mod request_log;
pub(crate) mod scrub;
pub(crate) mod tenant;
pub(crate) mod tool_server;

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::HeaderName;

use crate::config::spec::{AgentsSpec, AuditSpec, BudgetSpec, CacheSpec, MetricsSpec, Spec};
use crate::http::error_response::ErrorResponse;
use crate::layers::agent_layer::{AgentLayer, PATH_HEADER, VERSION_HEADER};
use crate::layers::budget::Budgets;
use crate::layers::counters::LayerCounter;
use crate::layers::identity::Identity;
use crate::routes::router::Route;
use crate::upstream::Upstream;

/// Calls a macro with all rows, in the order in which requests pass.
macro_rules! for_each_layer {
    ($then:ident) => {
        $then! {
            /// Layer: a request id on every request and response.
            request_id: crate::layers::request_id::RequestIdSpec => crate::layers::request_id::RequestId,
            /// Layer: Prometheus metrics of every request, at `/metrics`.
            metrics: crate::config::spec::MetricsSpec => crate::config::spec::MetricsSpec,
            /// Layer: authentication by API key.
            auth: crate::config::spec::AuthSpec => crate::layers::auth::Auth,
            /// Layer: tenants.
            tenant: crate::config::spec::TenantSpec => crate::layers::tenant::TenantRule,
            /// Layer: personal data is removed from responses, streams included.
            scrub: crate::config::spec::ScrubSpec => crate::layers::scrub::Scrub,
            /// Layer: the policy for texts of requests.
            policy: crate::config::spec::PolicySpec => crate::layers::policy::PolicyLayer,
            /// Layer: exact-match cache of LLM responses.
            cache: crate::config::spec::CacheSpec => crate::config::spec::CacheSpec,
            /// Layer: budgets of the tenants. Needs the section `tenant`.
            budgets: crate::config::spec::BudgetSpec => std::sync::Arc<crate::layers::budget::Budgets>,
            /// Layer: sessions, approvals and agents.
            agents: crate::config::spec::AgentsSpec => std::sync::Arc<crate::layers::agent_layer::AgentLayer>,
            /// Layer: an audit row for every request.
            audit: crate::config::spec::AuditSpec => crate::config::spec::AuditSpec,
            /// Layer: tools, over REST and MCP.
            tools: crate::config::spec::ToolsSpec => crate::layers::tool_server::ToolLayer,
        }
    };
}

/// What a layer is: made from its section, and asked at the places where layers differ. All but
/// the first have an empty default.
pub(crate) trait Layer: Sized {
    /// Its section in the configuration.
    type Section;

    /// Whether finished requests are measured or logged for it.
    const OBSERVES: bool = false;

    /// Whether it reads the text of answers, which must then be readable.
    const READS_ANSWERS: bool = false;

    /// What it adds to the metrics.
    const COUNTERS: &'static [&'static LayerCounter] = &[];

    /// # Errors
    /// A message about an invalid value.
    fn new(section: &Self::Section, setup: &Setup<'_>) -> Result<Self, String>;

    /// The headers of requests that it reads or sets. A request has at most one of each.
    fn headers(&self) -> Vec<HeaderName> {
        Vec::new()
    }

    /// Looks at a request before any layer that keeps state, and adds what it knows of who asks.
    ///
    /// # Errors
    /// The answer to a request that must not pass.
    fn admit(&self, _asked: &Asked<'_>, _identity: &mut Identity) -> Result<(), ErrorResponse> {
        Ok(())
    }
}

/// The name of a layer, from its row of the table. In metrics and rows it says who refused a
/// request.
pub(crate) trait LayerName {
    const NAME: &'static str;
}

/// What layers are made from beside their sections.
pub(crate) struct Setup<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) upstreams: &'a [Arc<Upstream>],
}

/// A request that asks to pass.
pub(crate) struct Asked<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) route: &'a Route,
    /// Whether a limit or a budget of tenants applies to it.
    pub(crate) counts_tenants: bool,
}

/// Makes the type that holds all layers in force.
macro_rules! define_layers {
    ($($(#[$meaning:meta])* $name:ident: $section:ty => $layer:ty,)*) => {
        $(impl LayerName for $layer {
            const NAME: &'static str = stringify!($name);
        })*

        /// The layers in force.
        #[derive(Debug)]
        pub(crate) struct Layers {
            $($(#[$meaning])* pub(crate) $name: Option<$layer>,)*
        }

        impl Layers {
            /// The layers whose sections are there. Invalid values are added to `problems`.
            pub(crate) fn new(setup: &Setup<'_>, problems: &mut Vec<String>) -> Self {
                Self {
                    $($name: make::<$layer>(setup.spec.$name.as_ref(), setup, problems),)*
                }
            }

            /// The headers of requests that layers read or set.
            pub(crate) fn headers(&self) -> Vec<HeaderName> {
                let mut headers = Vec::new();
                $(headers.extend(self.$name.iter().flat_map(Layer::headers));)*
                headers
            }

            /// Whether finished requests are measured or logged.
            pub(crate) const fn observe(&self) -> bool {
                $((<$layer as Layer>::OBSERVES && self.$name.is_some()) ||)* false
            }

            /// Whether a layer reads the text of answers.
            pub(crate) const fn read_answers(&self) -> bool {
                $((<$layer as Layer>::READS_ANSWERS && self.$name.is_some()) ||)* false
            }

            /// Passes a request through the layers.
            ///
            /// # Errors
            /// The answer of the first that refuses it.
            pub(crate) fn admit(
                &self,
                asked: &Asked<'_>,
                identity: &mut Identity,
            ) -> Result<(), ErrorResponse> {
                $(if let Some(layer) = &self.$name {
                    layer.admit(asked, identity).map_err(|error| error.by(<$layer>::NAME))?;
                })*
                Ok(())
            }
        }
    };
}

for_each_layer!(define_layers);

/// Makes the list of what layers add to the metrics.
macro_rules! list_counters {
    ($($(#[$meaning:meta])* $name:ident: $section:ty => $layer:ty,)*) => {
        [$(<$layer as Layer>::COUNTERS),*]
    };
}

/// What all layers add to the metrics, in the order of the table.
pub(crate) fn counters() -> Vec<&'static LayerCounter> {
    for_each_layer!(list_counters).into_iter().flatten().copied().collect()
}

fn make<L: Layer>(
    section: Option<&L::Section>,
    setup: &Setup<'_>,
    problems: &mut Vec<String>,
) -> Option<L> {
    match L::new(section?, setup) {
        Ok(layer) => Some(layer),
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

/// A layer as its section alone makes it.
#[cfg(test)]
pub(crate) fn made<L: Layer>(section: &L::Section) -> Result<L, String> {
    L::new(section, &Setup { spec: &Spec::default(), upstreams: &[] })
}

impl Layer for AuditSpec {
    type Section = Self;
    const OBSERVES: bool = true;

    fn new(section: &Self, _setup: &Setup<'_>) -> Result<Self, String> {
        if section.path.is_some() == section.clickhouse.is_some() {
            return Err("audit: needs either `path` or `clickhouse`".to_owned());
        }
        Ok(section.clone())
    }
}

impl Layer for MetricsSpec {
    type Section = Self;
    const OBSERVES: bool = true;

    fn new(section: &Self, _setup: &Setup<'_>) -> Result<Self, String> {
        Ok(*section)
    }
}

/// Requests by what the cache did.
pub(crate) static CACHE_RESULTS: LayerCounter = LayerCounter {
    name: "cache",
    help: "LLM requests by cache result: hit, miss or bypass",
    labels: &["state"],
    known: &[&["hit"], &["miss"], &["bypass"]],
};

impl Layer for CacheSpec {
    type Section = Self;
    const READS_ANSWERS: bool = true;
    const COUNTERS: &'static [&'static LayerCounter] = &[&CACHE_RESULTS];

    fn new(section: &Self, _setup: &Setup<'_>) -> Result<Self, String> {
        match HeaderName::try_from(&section.bypass_header) {
            Ok(_) => Ok(section.clone()),
            Err(_) => Err("cache: `bypass_header` is not a header name".to_owned()),
        }
    }

    fn headers(&self) -> Vec<HeaderName> {
        HeaderName::try_from(&self.bypass_header).into_iter().collect()
    }
}

impl Layer for Arc<Budgets> {
    type Section = BudgetSpec;
    const READS_ANSWERS: bool = true;

    fn new(section: &BudgetSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        Budgets::new(section).map(Self::new)
    }
}

impl Layer for Arc<AgentLayer> {
    type Section = AgentsSpec;
    const COUNTERS: &'static [&'static LayerCounter] = &[&agent_layer::OPERATIONS];

    fn new(section: &AgentsSpec, setup: &Setup<'_>) -> Result<Self, String> {
        AgentLayer::new(section, setup.upstreams).map(Self::new)
    }

    fn headers(&self) -> Vec<HeaderName> {
        vec![PATH_HEADER.clone(), VERSION_HEADER.clone()]
    }
}
