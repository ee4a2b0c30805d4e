//! The layers: what each does with a request or an answer, where its section enables it.
//!
//! From the table below come the keys of the configuration and their meaning in the reference, the
//! names that `/admin/build` and the metrics show, what is made of the sections, the headers that
//! belong to the gateway, and the order in which layers look at a request.

pub(crate) mod agent_layer;
pub(crate) mod auth;
pub(crate) mod budget;
pub(crate) mod cache;
pub(crate) mod fault_injection;
pub(crate) mod forwarded;
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
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ptr;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HOST, HeaderName};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Request};
use plimsoll_gateway_dialect::{StreamStatus, Usage};
use plimsoll_gateway_inspect::Source;
use plimsoll_gateway_store::LimitKey;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use ring::digest::Context;
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use crate::config::Secret;
use crate::http::BodyFilter;
use crate::http::error_response::ErrorResponse;
use crate::http::header_list::{HeaderList, headers_of};
use crate::http::normal_form::is_configurable;
use crate::layers::auth::{Consumer, bearer, sha256};
use crate::layers::fault_injection::FaultSpec;
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

/// What a layer is: made from its section, and asked at the places where layers differ. All but
/// the first have an empty default.
pub(crate) trait Layer: Sized {
    /// Its section in the configuration.
    type Section;

    /// Whether finished requests are measured or logged for it.
    const OBSERVES: bool = false;

    /// Whether it reads the text of answers, which must then be readable.
    const READS_ANSWERS: bool = false;

    /// Whether [`Self::answer`] and [`Self::filter`] change answers. Cached answers of other
    /// settings are not served.
    const CHANGES_ANSWERS: bool = false;

    /// Whether [`Self::request`] judges requests. The same holds for cached answers.
    const JUDGES_REQUESTS: bool = false;

    /// What it adds to the metrics.
    const COUNTERS: &'static [&'static LayerCounter] = &[];

    /// # Errors
    /// A message about an invalid value.
    fn new(section: &Self::Section, setup: &Setup<'_>) -> Result<Self, String>;

    /// The headers of requests that it reads or sets. A request has at most one of each.
    fn headers(&self) -> Vec<HeaderName> {
        Vec::new()
    }

    /// Checks a request before any stateful layer, and adds what it knows about the caller.
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

    /// Judges a JSON document of a client, a tool or an agent, which is not empty. Returns what
    /// takes its place; `None` if nothing changed.
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

    /// How it reads an answer with these headers. One without a type is `otherwise`.
    ///
    /// # Errors
    /// It cannot be read, and must not pass.
    fn reading(&self, _headers: &HeaderMap, _otherwise: Reading) -> Result<Reading, ErrorResponse> {
        Ok(Reading::Nothing)
    }

    /// A filter for an answer that passes in pieces.
    fn filter(&self, _reading: Reading) -> Option<Box<dyn BodyFilter>> {
        None
    }

    /// Changes a whole answer. Returns what takes its place; `None` if nothing changed.
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
    /// It is JSON: read whole.
    Json,
    /// It is a stream of events: read one by one.
    Events,
    /// It is any other text: read as it comes.
    Text,
    /// It passes without being read.
    Nothing,
}

/// What a layer that judges a request sees and records beside it.
pub(crate) struct RequestFacts<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) info: &'a mut Option<Box<LlmInfo>>,
}

/// The name of a layer, from its row of the table. In metrics and rows it says who refused a
/// request.
pub(crate) trait LayerName {
    const NAME: &'static str;
}

/// What layers are made from beside their sections.
pub(crate) struct Setup<'a> {
    pub(crate) faults: FaultSpec,
    pub(crate) upstreams: &'a [Arc<Upstream>],
}

/// Who may use a route. An empty list of consumers stands for all of them.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) consumers: Vec<Arc<str>>,
    pub(crate) scope: Option<String>,
}

/// What a layer sees of a request that it may admit.
pub(crate) struct AdmissionRequest<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) access: &'a Access,
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

            /// How an answer is read: the first layer that reads it says so.
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

            /// The filters of all layers for an answer that passes in pieces.
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
            /// The answer of the first that refuses it.
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

/// A layer as its section alone makes it.
#[cfg(test)]
pub(crate) fn made<L: Layer>(section: &L::Section) -> Result<L, String> {
    L::new(section, &Setup { faults: FaultSpec::default(), upstreams: &[] })
}

/// Administration: who may see the build and reload the configuration, and where.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AdminSpec {
    /// Whether `/admin/build` and `/admin/reload` are served.
    pub enabled: bool,
    /// Key that administration needs, behind `authorization: Bearer`; `${NAME}` for an environment
    /// variable. Without a key and without an address of its own administration is closed.
    pub key: Option<Secret>,
    /// Without a key, open to clients on this machine, at the address of the clients, too. A proxy
    /// on this machine may pass everybody's requests on as its own: for tests only.
    pub local: bool,
    /// An address of its own, like `127.0.0.1:9901`, with a thread of its own: health, metrics and
    /// administration are served there however busy the workers are, also when all
    /// `server.connections` are taken. Metrics and administration are then served only there.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub listen: Option<SocketAddr>,
}

impl Default for AdminSpec {
    fn default() -> Self {
        Self { enabled: true, key: None, local: false, listen: None }
    }
}

/// Whom a worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    /// Clients, at the address of the gateway.
    Clients,
    /// Those who look after the gateway, at the address of the administration.
    Administration,
}

static FOR_ANOTHER: HeaderList = LazyLock::new(|| headers_of("for-another"));

/// Decides who may administrate. Only the digest of the key is kept.
#[derive(Debug)]
pub(crate) struct AdminGate {
    key: Option<[u8; 32]>,
    /// Where clients on this machine need no key.
    local: Local,
}

/// Where clients on this machine need no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Local {
    Nowhere,
    /// At the address of the administration.
    Apart,
    Everywhere,
}

impl AdminGate {
    /// # Errors
    /// A message as [`Secret::reveal`].
    pub(crate) fn new(spec: &AdminSpec) -> Result<Self, String> {
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        let key = key.map_err(|problem| format!("admin: {problem}"))?;
        let local = match (spec.local, spec.listen) {
            (true, _) => Local::Everywhere,
            (false, Some(_)) => Local::Apart,
            (false, None) => Local::Nowhere,
        };
        Ok(Self { key: key.map(|key| sha256(key.as_bytes())), local })
    }

    /// Whether a client may administrate.
    ///
    /// # Errors
    /// The answer to the client when it may not.
    pub(crate) fn admit<B>(
        &self,
        client: IpAddr,
        serves: Serves,
        request: &Request<B>,
    ) -> Result<(), ErrorResponse> {
        let headers = request.headers();
        let Some(key) = &self.key else {
            let open = match self.local {
                Local::Nowhere => false,
                Local::Apart => serves == Serves::Administration,
                Local::Everywhere => true,
            };
            if !open {
                let message = "administration is closed: give it a key (`admin.key`) or an address of its own (`admin.listen`)";
                return Err(ErrorResponse::forbidden(message));
            }
            let for_another = FOR_ANOTHER.iter().any(|name| headers.contains_key(name));
            let is_local = client.to_canonical().is_loopback();
            return if is_local && !for_another && names_this_machine(request) {
                Ok(())
            } else {
                let message = "only clients on the gateway's own machine may, by its address";
                Err(ErrorResponse::forbidden(message))
            };
        };
        let sent = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        match sent {
            None => Err(ErrorResponse::auth_required("send the key of the administration")),
            Some(sent) if sha256(sent).ct_eq(key).into() => Ok(()),
            Some(_) => Err(ErrorResponse::auth_failed("the key is not that of the administration")),
        }
    }
}

/// Whether the host is an address or `localhost`. Only HTTP/1.0 may name none, which no browser
/// speaks.
fn names_this_machine<B>(request: &Request<B>) -> bool {
    let named = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    let Some(host) = request.uri().authority().map(Authority::as_str).or(named) else {
        return true;
    };
    let name =
        host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(name, _)| name);
    let is_ipv6 = name.starts_with('[');
    is_ipv6 || name.parse::<Ipv4Addr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

/// A counter that a layer adds to the metrics. The values of its labels come from closed sets.
#[derive(Debug)]
pub(crate) struct LayerCounter {
    /// Without the prefix of all metrics, and without `_total`.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: &'static [&'static str],
    /// Values of the labels that are there from the start, with 0.
    pub(crate) known: &'static [&'static [&'static str]],
}

type Labels = Vec<(&'static str, String)>;

/// The counters of all layers, whether or not they are enabled.
#[derive(Debug)]
pub(crate) struct LayerCounters(Vec<(&'static LayerCounter, Family<Labels, Counter>)>);

impl LayerCounters {
    /// Registers the counters of the table, in its order.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let counters = counters().into_iter().map(|counter: &'static LayerCounter| {
            let family = Family::default();
            registry.register(counter.name, counter.help, family.clone());
            for values in counter.known {
                drop(family.get_or_create(&labels(counter, values)));
            }
            (counter, family)
        });
        Self(counters.collect())
    }

    /// Counts one. The values are those of the counter's labels, in their order.
    pub(crate) fn count(&self, counter: &'static LayerCounter, values: &[&str]) {
        if let Some((_, family)) = self.0.iter().find(|(known, _)| ptr::eq(*known, counter)) {
            family.get_or_create(&labels(counter, values)).inc();
        }
    }
}

fn labels(counter: &LayerCounter, values: &[&str]) -> Labels {
    counter.labels.iter().copied().zip(values.iter().map(|value| (*value).to_owned())).collect()
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// The owner of the key.
    pub(crate) consumer: Option<Arc<Consumer>>,
    pub(crate) tenant: Option<Arc<str>>,
    /// Digest of the credentials that the upstream gets from the client. Only where answers are
    /// cached: to another credential the upstream may answer something else, or nothing.
    pub(crate) credential: Option<[u8; 32]>,
}

/// The name under which requests without a tenant are counted, where that is configured. No tenant
/// has it: the scope differs.
const ANONYMOUS: LimitKey<'static> = LimitKey::new("anonymous", "");

impl Identity {
    /// The key under which the tenant is counted.
    pub(crate) fn tenant_key(&self) -> LimitKey<'_> {
        self.tenant.as_deref().map_or(ANONYMOUS, |tenant| LimitKey::new("tenant", tenant))
    }

    /// Whose the sessions, approvals and runs are that the request makes: the tenant's, without one
    /// the consumer's, otherwise everybody's.
    pub(crate) fn owner(&self) -> String {
        match (&self.tenant, &self.consumer) {
            (Some(tenant), _) => format!("t:{tenant}"),
            (None, Some(consumer)) => format!("c:{}", consumer.name),
            (None, None) => "-".to_owned(),
        }
    }

    /// How many of so many places the owner may take. A tenant leaves an eighth to all others;
    /// where nobody is known, all are one owner.
    pub(crate) fn share_of(&self, places: usize) -> usize {
        let is_known = self.tenant.is_some() || self.consumer.is_some();
        if is_known { places - places / 8 } else { places }
    }

    /// Writes what two requests must have in common to share an answer: the tenant, without one the
    /// consumer, and the credential that the upstream judges.
    pub(crate) fn write_scope(&self, hash: &mut Context) {
        let (kind, name) = match (&self.tenant, &self.consumer) {
            (Some(tenant), _) => (b"t", &**tenant),
            (None, Some(consumer)) => (b"c", &*consumer.name),
            (None, None) => (b"-", ""),
        };
        hash.update(kind);
        hash.update(&(name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
        hash.update(if self.credential.is_some() { b"p" } else { b"n" });
        hash.update(self.credential.as_ref().map_or(&[], |digest| &digest[..]));
    }
}

/// Facts about an LLM request or a tool call that end up in its log row.
#[derive(Debug, Default)]
pub(crate) struct LlmInfo {
    pub(crate) model: Option<Arc<str>>,
    /// Members of the request that the translation left out.
    pub(crate) left_out: Option<Arc<str>>,
    /// `hit`, `miss` or `bypass`.
    pub(crate) cache: Option<&'static str>,
    /// The most severe action that the policy took.
    pub(crate) policy_decision: Option<&'static str>,
    /// Ids of the policy rules that matched.
    pub(crate) rules: Vec<String>,
    /// The tool that was called, as `SERVER/TOOL`.
    pub(crate) tool: Option<Box<str>>,
    /// What became of the call.
    pub(crate) outcome: Option<&'static str>,
}

/// The usage of one response, for its log row.
#[derive(Debug, Default)]
pub(crate) struct ObservedUsage {
    usage: Cell<Option<Usage>>,
    truncated: Cell<bool>,
    failed: Cell<bool>,
    is_answer: Cell<bool>,
}

impl ObservedUsage {
    pub(crate) fn set(&self, usage: Option<Usage>) {
        self.usage.set(usage);
    }

    pub(crate) fn get(&self) -> Option<Usage> {
        self.usage.get()
    }

    /// Whether the response that has ended is a whole and good answer.
    pub(crate) fn is_answer(&self) -> bool {
        self.is_answer.get()
    }

    /// Whether the upstream's stream had an error event, or went on behind its end.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Whether the upstream's stream ended before its last event, although the connection was
    /// closed properly.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated.get()
    }

    /// Records how the response ended. `ending` is that of a stream.
    pub(crate) fn set_ending(&self, ending: Option<StreamStatus>, is_answer: bool) {
        self.truncated.set(ending == Some(StreamStatus::Truncated));
        self.failed.set(ending == Some(StreamStatus::Failed));
        self.is_answer.set(is_answer);
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;
    use ring::digest::SHA256;

    use super::*;
    use crate::assembly::spec::Spec;

    fn gate(admin: &str) -> AdminGate {
        AdminGate::new(&Spec::from_yaml(&format!("admin: {admin}")).unwrap().admin).unwrap()
    }

    fn status(gate: &AdminGate, client: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let mut request = Request::new(());
        *request.headers_mut() = headers
            .iter()
            .map(|(name, value): &(&'static str, &str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            })
            .collect();
        gate.admit(client.parse().unwrap(), Serves::Administration, &request)
            .err()
            .map(|error| error.status.as_u16())
    }

    #[test]
    fn without_a_key_and_an_address_of_its_own_nobody_is_admitted() {
        for admin in ["{}", "{enabled: true}"] {
            assert_eq!(status(&gate(admin), "127.0.0.1", &[]), Some(403), "{admin}");
        }
        for admin in ["{listen: '127.0.0.1:0'}", "{local: true}"] {
            assert_eq!(status(&gate(admin), "127.0.0.1", &[]), None, "{admin}");
        }
    }

    #[test]
    fn without_a_key_only_this_machine_is_admitted() {
        let gate = gate("{local: true}");
        for (client, admitted) in [
            ("127.0.0.1", true),
            ("127.8.9.10", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("192.168.1.1", false),
            ("::ffff:10.0.0.1", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(status(&gate, client, &[]).is_none(), admitted, "{client}");
        }
    }

    #[test]
    fn a_proxy_or_a_browser_on_this_machine_is_not_admitted() {
        for name in ["x-forwarded-for", "forwarded", "via", "x-real-ip", "origin", "sec-fetch-site"]
        {
            assert_eq!(status(&gate("{local: true}"), "::1", &[(name, "x")]), Some(403), "{name}");
        }
    }

    #[test]
    fn a_host_that_is_a_name_of_somebody_is_not_admitted() {
        for (host, admitted) in [
            ("127.0.0.1:8080", true),
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("[::1]", true),
            ("[::1]:8080", true),
            ("evil.example:8080", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("gateway", false),
        ] {
            let found = status(&gate("{local: true}"), "127.0.0.1", &[("host", host)]);
            assert_eq!(found.is_none(), admitted, "{host}");
        }
    }

    #[test]
    fn a_key_admits_everybody_who_has_it_and_nobody_else() {
        let gate = gate("{key: sesame}");
        for (headers, expected) in [
            (&[("authorization", "Bearer sesame")][..], None),
            (&[("authorization", "Bearer sesamE")], Some(403)),
            (&[("authorization", "sesame")], Some(401)),
            (&[], Some(401)),
        ] {
            for client in ["127.0.0.1", "10.0.0.1"] {
                assert_eq!(status(&gate, client, headers), expected, "{client} {headers:?}");
            }
        }
    }

    fn scope(tenant: Option<&str>, consumer: Option<&str>, credential: Option<u8>) -> Vec<u8> {
        let consumer = consumer.map(|name| {
            Arc::new(Consumer {
                name: Arc::from(name),
                tenant: None,
                names_any_tenant: false,
                scopes: Vec::new(),
            })
        });
        let identity = Identity {
            consumer,
            tenant: tenant.map(Arc::from),
            credential: credential.map(|byte| [byte; 32]),
        };
        let mut hash = Context::new(&SHA256);
        identity.write_scope(&mut hash);
        hash.finish().as_ref().to_vec()
    }

    #[test]
    fn only_the_same_tenant_with_the_same_credential_has_the_same_scope() {
        let all = [
            scope(None, None, None),
            scope(Some(""), None, None),
            scope(Some("a"), None, None),
            scope(None, Some("a"), None),
            scope(None, Some("b"), None),
            scope(Some("a"), None, Some(1)),
            scope(Some("a"), None, Some(2)),
            scope(None, None, Some(1)),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one), "{at}");
        }
        assert_eq!(scope(Some("a"), Some("k1"), None), scope(Some("a"), Some("k2"), None));
    }
}
