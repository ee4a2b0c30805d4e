//! The layers: how each handles requests and answers, if its section enables it.
//!
//! The table below defines the configuration keys and their meaning in the reference, the names in
//! `/admin/build` and in metrics, the layers made from the sections, the headers owned by the
//! gateway, and the order in which layers check a request.

pub(crate) mod admin;
pub(crate) mod agent_layer;
pub(crate) mod auth;
pub(crate) mod budget;
pub(crate) mod cache;
pub(crate) mod counters;
pub(crate) mod fault_injection;
pub(crate) mod forwarded;
pub(crate) mod identity;
pub(crate) mod jwt;
pub(crate) mod metrics;
pub(crate) mod offload;
pub(crate) mod owners;
pub(crate) mod policy;
pub(crate) mod rate_limit;
pub(crate) mod request_id;
pub(crate) mod request_log;
pub(crate) mod scrub;
pub(crate) mod tenant;
pub(crate) mod tool_server;

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::HeaderName;
use plimsoll_gateway_dialect::{StreamStatus, Usage};
use plimsoll_gateway_inspect::Source;
use plimsoll_gateway_policy::Action;

use crate::http::body_filter::BodyFilter;
use crate::http::error_response::ErrorResponse;
use crate::http::normal_form::is_configurable;
use crate::layers::counters::LayerCounter;
use crate::layers::fault_injection::FaultSpec;
use crate::layers::identity::Identity;
use crate::layers::metrics::Metrics;
use crate::upstream::Upstream;

/// Calls a macro with all rows, in the order in which requests pass.
macro_rules! for_each_layer {
    ($then:ident) => {
        $then! {
            /// Layer: a request id on every request and response.
            request_id: crate::layers::request_id::RequestIdSpec => crate::layers::request_id::RequestId,
            /// Layer: Prometheus metrics of every request, at `/metrics`.
            metrics: crate::layers::metrics::MetricsSpec => crate::layers::metrics::MetricsSpec,
            /// Layer: authentication by API key.
            auth: crate::layers::auth::AuthSpec => crate::layers::auth::Auth,
            /// Layer: tenants.
            tenant: crate::layers::tenant::TenantSpec => crate::layers::tenant::TenantRule,
            /// Layer: personal data is removed from responses, streams included.
            scrub: crate::layers::scrub::ScrubSpec => crate::layers::scrub::Scrub,
            /// Layer: the policy for texts of requests.
            policy: crate::layers::policy::PolicySpec => crate::layers::policy::PolicyLayer,
            /// Layer: exact-match cache of LLM responses.
            cache: crate::layers::cache::CacheSpec => crate::layers::cache::CacheSpec,
            /// Layer: budgets of the tenants. Needs the section `tenant`.
            budgets: crate::layers::budget::BudgetSpec => std::sync::Arc<crate::layers::budget::Budgets>,
            /// Layer: sessions, approvals and agents.
            agents: crate::layers::agent_layer::AgentsSpec => std::sync::Arc<crate::layers::agent_layer::AgentLayer>,
            /// Layer: a line for every request in a file, with the members of audit rows.
            access_log: crate::layers::request_log::AccessLogSpec => crate::layers::request_log::AccessLogSpec,
            /// Layer: an audit row for every request.
            audit: crate::layers::request_log::AuditSpec => crate::layers::request_log::AuditSpec,
            /// Layer: tools, over REST and MCP.
            tools: crate::layers::tool_server::ToolsSpec => crate::layers::tool_server::ToolLayer,
        }
    };
}

/// A layer: made from its section, with hooks where layers differ. All hooks but the first have an
/// empty default.
pub(crate) trait Layer: Sized {
    /// Its section in the configuration.
    type Section;

    /// Whether it measures or logs finished requests.
    const OBSERVES: bool = false;

    /// Whether it reads the text of answers, which must then not be encoded.
    const READS_ANSWERS: bool = false;

    /// Whether [`Self::answer`] and [`Self::filter`] change answers. Answers cached under other
    /// settings are not served.
    const CHANGES_ANSWERS: bool = false;

    /// Whether [`Self::request`] judges requests. The same applies to cached answers.
    const JUDGES_REQUESTS: bool = false;

    /// Its additional metrics.
    const COUNTERS: &'static [&'static LayerCounter] = &[];

    /// # Errors
    /// A message about an invalid value.
    fn new(section: &Self::Section, setup: &Setup<'_>) -> Result<Self, String>;

    /// The request headers that it reads or sets. A request has at most one of each.
    fn headers(&self) -> Vec<HeaderName> {
        Vec::new()
    }

    /// Checks a request before any stateful layer, and adds facts about the caller.
    ///
    /// # Errors
    /// The answer to a request that must not pass.
    fn admit(
        &self,
        _request: &AdmissionRequest<'_>,
        _identity: &mut Identity,
    ) -> Result<(), ErrorResponse> {
        Ok(())
    }

    /// Judges a JSON document of a client, a tool or an agent, which is not empty. Returns the
    /// replacement; `None` if it is unchanged.
    ///
    /// # Errors
    /// The document must not pass.
    async fn request(
        &self,
        _facts: RequestFacts<'_>,
        _document: &Bytes,
        _source: Source,
    ) -> Result<Option<Bytes>, ErrorResponse> {
        Ok(None)
    }

    /// How it reads an answer with these headers. `otherwise` applies without a type.
    ///
    /// # Errors
    /// It cannot be read, and must not pass.
    fn reading(&self, _headers: &HeaderMap, _otherwise: Reading) -> Result<Reading, ErrorResponse> {
        Ok(Reading::Nothing)
    }

    /// A filter for a streamed answer.
    fn filter(&self, _reading: Reading) -> Option<Box<dyn BodyFilter>> {
        None
    }

    /// Changes a whole answer. Returns the replacement; `None` if it is unchanged.
    ///
    /// # Errors
    /// It cannot be read, and must not pass.
    async fn answer(
        &self,
        _body: &Bytes,
        _reading: Reading,
        _source: Source,
    ) -> Result<Option<Bytes>, ErrorResponse> {
        Ok(None)
    }
}

/// How an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// JSON, read as a whole.
    Json,
    /// A stream of events, read one by one.
    Events,
    /// Any other text, read as it arrives.
    Text,
    /// It is not read.
    Nothing,
}

/// The context in which a layer judges a request, and its record.
pub(crate) struct RequestFacts<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) info: &'a mut Option<Box<LlmInfo>>,
}

/// The name of a layer, from its row of the table. Metrics and rows use it for refusals.
pub(crate) trait LayerName {
    const NAME: &'static str;
}

/// The inputs of layers beside their sections.
pub(crate) struct Setup<'a> {
    pub(crate) faults: FaultSpec,
    pub(crate) upstreams: &'a [Arc<Upstream>],
}

/// The access rules of a route. An empty list of consumers allows all.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) consumers: Vec<Arc<str>>,
    pub(crate) scope: Option<String>,
}

/// The parts of a request that a layer sees when it admits it.
pub(crate) struct AdmissionRequest<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) access: &'a Access,
    /// Whether a limit or a budget of tenants applies to it.
    pub(crate) counts_tenants: bool,
}

/// Makes the type with all layers in force.
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
            /// The request headers that layers read or set.
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

            /// Whether a layer changes answers.
            pub(crate) const fn change_answers(&self) -> bool {
                $((<$layer as Layer>::CHANGES_ANSWERS && self.$name.is_some()) ||)* false
            }

            /// Whether a layer judges requests.
            pub(crate) const fn judge_requests(&self) -> bool {
                $((<$layer as Layer>::JUDGES_REQUESTS && self.$name.is_some()) ||)* false
            }

            /// Judges a document by all layers; `None` if nothing changed.
            ///
            /// # Errors
            /// As [`Layer::request`].
            pub(crate) async fn request(
                &self,
                facts: RequestFacts<'_>,
                document: &Bytes,
                source: Source,
            ) -> Result<Option<Bytes>, ErrorResponse> {
                let mut changed = None;
                $(if <$layer as Layer>::JUDGES_REQUESTS && let Some(layer) = &self.$name {
                    let facts = RequestFacts { metrics: facts.metrics, info: &mut *facts.info };
                    let document = changed.as_ref().unwrap_or(document);
                    changed = layer.request(facts, document, source).await?.or(changed);
                })*
                Ok(changed)
            }

            /// How an answer is read, decided by the first layer that reads it.
            ///
            /// # Errors
            /// As [`Layer::reading`].
            pub(crate) fn reading(
                &self,
                headers: &HeaderMap,
                otherwise: Reading,
            ) -> Result<Reading, ErrorResponse> {
                let mut reading = Reading::Nothing;
                $(if <$layer as Layer>::CHANGES_ANSWERS && let Some(layer) = &self.$name {
                    let own = layer.reading(headers, otherwise)?;
                    reading = if reading == Reading::Nothing { own } else { reading };
                })*
                Ok(reading)
            }

            /// The filters of all layers for a streamed answer.
            pub(crate) fn filters(&self, reading: Reading) -> Vec<Box<dyn BodyFilter>> {
                let mut filters = Vec::new();
                $(filters.extend(self.$name.iter().filter_map(|layer| layer.filter(reading)));)*
                filters
            }

            /// Changes a whole answer by all layers; `None` if nothing changed.
            ///
            /// # Errors
            /// As [`Layer::answer`].
            pub(crate) async fn answer(
                &self,
                body: &Bytes,
                reading: Reading,
                source: Source,
            ) -> Result<Option<Bytes>, ErrorResponse> {
                let mut changed = None;
                $(if <$layer as Layer>::CHANGES_ANSWERS && let Some(layer) = &self.$name {
                    let body = changed.as_ref().unwrap_or(body);
                    changed = layer.answer(body, reading, source).await?.or(changed);
                })*
                Ok(changed)
            }

            /// Passes a request through the layers.
            ///
            /// # Errors
            /// The answer of the first layer that refuses it.
            pub(crate) fn admit(
                &self,
                request: &AdmissionRequest<'_>,
                identity: &mut Identity,
            ) -> Result<(), ErrorResponse> {
                $(if let Some(layer) = &self.$name {
                    layer.admit(request, identity).map_err(|error| error.by(<$layer>::NAME))?;
                })*
                Ok(())
            }
        }
    };
}

for_each_layer!(define_layers);

/// Lists the additional metrics of layers.
macro_rules! list_counters {
    ($($(#[$meaning:meta])* $name:ident: $section:ty => $layer:ty,)*) => {
        [$(<$layer as Layer>::COUNTERS),*]
    };
}

/// The additional metrics of all layers, in the order of the table.
pub(crate) fn counters() -> Vec<&'static LayerCounter> {
    for_each_layer!(list_counters).into_iter().flatten().copied().collect()
}

/// The header that a setting names.
///
/// # Errors
/// A message with the setting.
pub(crate) fn header_name(setting: &str, name: &str) -> Result<HeaderName, String> {
    let name = HeaderName::try_from(name).ok().filter(is_configurable);
    name.ok_or_else(|| format!("{setting} is not a header name that a client may set"))
}

/// Makes a layer if its section is there. An invalid value is added to `problems`.
pub(crate) fn make<L: Layer>(
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

/// Makes a layer from its section alone.
#[cfg(test)]
pub(crate) fn made<L: Layer>(section: &L::Section) -> Result<L, String> {
    L::new(section, &Setup { faults: FaultSpec::default(), upstreams: &[] })
}

/// Facts about an LLM request or a tool call for its log row.
#[derive(Debug, Default)]
pub(crate) struct LlmInfo {
    pub(crate) model: Option<Arc<str>>,
    /// Request members that the translation omitted.
    pub(crate) left_out: Option<Arc<str>>,
    /// `hit`, `miss` or `bypass`.
    pub(crate) cache: Option<&'static str>,
    /// The most severe action that the policy took.
    pub(crate) policy_decision: Option<Action>,
    /// Ids of the policy rules that matched.
    pub(crate) rules: Vec<String>,
    /// The tool that was called, as `SERVER/TOOL`.
    pub(crate) tool: Option<Box<str>>,
    /// Outcome of the call.
    pub(crate) outcome: Option<&'static str>,
}

/// The usage of one response, for its log row, and its end.
#[derive(Debug, Default)]
pub(crate) struct ObservedUsage {
    pub(crate) usage: Cell<Option<Usage>>,
    /// How the upstream's stream ended: with its last event, with an error event or a continuation
    /// after its end, or before its last event although the connection was closed properly.
    pub(crate) ending: Cell<Option<StreamStatus>>,
    /// Whether the ended response is a complete and good answer.
    pub(crate) is_answer: Cell<bool>,
}
