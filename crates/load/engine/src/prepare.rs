//! From a plan to what every worker needs, computed once and shared read-only.

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll_measure::{PolicyDecision, ScenarioId, TargetId};
use plimsoll_profile::{HttpVersion, Plan, Scheme, Target};
use plimsoll_protocol::{
    Decoder, DecoderOptions, Dialect, Encoder, EncoderOptions, HttpContent, RequestContent, Turn,
};
use plimsoll_schedule::Schedule;
use plimsoll_transport::{
    Connector, Endpoint, RequestHead, RequestHeadError, SocketOptions, TlsClientConfig,
    TlsSettings, with_own_session_cache,
};
use plimsoll_workload::{HttpSpec, ScenarioSpec, Trace, Workload};

use crate::error::EngineError;
use crate::policy_decision::PolicyDecisionReader;

/// A plan, ready to be carried out.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) schedule: Schedule,
    pub(crate) workload: Workload,
    tls: Option<Arc<TlsClientConfig>>,
    routes: Vec<Route>,
}

impl Prepared {
    /// Loads what the plan names (trace, tokenizer, roots) and prepares every route.
    pub(crate) fn new(plan: Plan) -> Result<Self, EngineError> {
        let trace = plan.read_trace()?;
        let offsets = trace.as_ref().map(Trace::offsets);
        let stages = match &trace {
            Some(trace) => plan.stages.clone().with_trace_length(trace.duration()),
            None => plan.stages.clone(),
        };
        let schedule = Schedule::new(&stages, plan.arrivals, plan.seed, offsets)?;
        let workload = Workload::new(&plan.scenarios, trace, plan.tokenizer.as_deref(), plan.seed)?;
        let wants_tls = plan.targets.iter().any(|target| target.url.scheme() == Scheme::Https);
        let settings = TlsSettings {
            ca_file: plan.tls.ca_file.clone(),
            insecure: plan.tls.insecure,
            resumption: plan.tls.resumption,
        };
        let alpn = match plan.http.version {
            HttpVersion::Http1 => "http/1.1",
            HttpVersion::Http2 => "h2",
        };
        let tls = wants_tls.then(|| settings.client_config(alpn)).transpose()?;
        let mut routes = Vec::new();
        for target in &plan.targets {
            for scenario in &plan.scenarios {
                routes.push(Route::new(scenario, target, plan.limits.max_body)?);
            }
        }
        Ok(Self { plan, schedule, workload, tls, routes })
    }

    /// How turns of a scenario are said to a target.
    pub(crate) fn route(&self, scenario: ScenarioId, target: TargetId) -> &Route {
        &self.routes[self.route_index(scenario, target)]
    }

    /// Position of a route, for what workers keep per route.
    pub(crate) fn route_index(&self, scenario: ScenarioId, target: TargetId) -> usize {
        target.index() * self.plan.scenarios.len() + scenario.index()
    }

    /// Number of routes.
    pub(crate) const fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Opens connections to a target, with a memory of TLS sessions of its own.
    pub(crate) fn connector(&self, target: &Target) -> Result<Connector, EngineError> {
        let endpoint = Endpoint::new(target.url.host().to_owned(), target.url.port());
        let tls = self.tls.as_ref().filter(|_| target.url.scheme() == Scheme::Https);
        let tls = tls.map(|config| with_own_session_cache(config, self.plan.tls.resumption));
        let http = self.plan.http;
        let options = SocketOptions {
            timeout: self.plan.limits.connect_timeout,
            kernel_timestamps: self.plan.instrument.kernel_timestamps,
            bind: self.plan.bind.clone(),
            requests_per_connection: http
                .requests_per_connection
                .map(|churn| (churn.min, churn.max.max(churn.min))),
            http2_streams: (http.version == HttpVersion::Http2)
                .then_some(http.streams_per_connection),
        };
        Ok(Connector::new(endpoint, tls, options)?)
    }
}

/// How the turns of one scenario are said to one target.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) encoder: Encoder,
    base_path: String,
    /// Scheme and authority of the target.
    origin: String,
    headers: Vec<(String, String)>,
    /// Rendered once where every turn has the same; plain HTTP with templates in its head has none.
    head: Option<RequestHead>,
    stream: bool,
    decoding: DecoderOptions,
    pub(crate) policy_decisions: PolicyDecisionReader,
}

impl Route {
    fn new(scenario: &ScenarioSpec, target: &Target, max_body: u64) -> Result<Self, EngineError> {
        let dialect = target.protocol.unwrap_or(scenario.protocol);
        let options = EncoderOptions {
            model: target.model.clone(),
            parameters: scenario.parameters.clone(),
            ..EncoderOptions::default()
        };
        let encoder = Encoder::new(dialect, &options)
            .map_err(|cause| EngineError::Protocol { scenario: scenario.name.clone(), cause })?;
        let mut route = Self {
            headers: headers(&encoder, scenario, target),
            encoder,
            base_path: target.url.path().to_owned(),
            origin: format!("{}://{}", target.url.scheme().name(), target.url.authority()),
            head: None,
            stream: scenario.stream,
            decoding: DecoderOptions {
                keep_text: scenario.turns > 1,
                max_body_bytes: max_body,
                ..DecoderOptions::default()
            },
            policy_decisions: PolicyDecisionReader::new(
                scenario.expect.map(PolicyDecision::from),
                &scenario.policy_decision,
            ),
        };
        route.head = route
            .prepared_head(scenario)
            .map_err(|cause| EngineError::Head { scenario: scenario.name.clone(), cause })?;
        Ok(route)
    }

    /// Are answers asked for as streams?
    pub(crate) const fn streams(&self) -> bool {
        self.stream
    }

    /// A decoder for the answers of this route.
    pub(crate) const fn decoder(&self) -> Decoder {
        Decoder::new(self.encoder.dialect(), self.stream, self.decoding)
    }

    /// The head of a turn's request.
    ///
    /// # Errors
    /// A template of plain HTTP that came out as something no head can hold.
    pub(crate) fn head(&self, turn: &Turn<'_>) -> Result<Cow<'_, RequestHead>, RequestHeadError> {
        self.head
            .as_ref()
            .map_or_else(|| self.render(turn).map(Cow::Owned), |head| Ok(Cow::Borrowed(head)))
    }

    fn prepared_head(
        &self,
        scenario: &ScenarioSpec,
    ) -> Result<Option<RequestHead>, RequestHeadError> {
        let content = match &scenario.http {
            Some(http) if self.encoder.dialect() == Dialect::Http => match fixed_ask(http) {
                None => return Ok(None),
                Some(content) => content,
            },
            _ => HttpContent { method: "POST".to_owned(), ..HttpContent::default() },
        };
        self.render(&Turn {
            content: RequestContent::Http(&content),
            stream: self.stream,
            max_tokens: None,
        })
        .map(Some)
    }

    fn render(&self, turn: &Turn<'_>) -> Result<RequestHead, RequestHeadError> {
        let own = if let RequestContent::Http(content) = turn.content {
            content.headers.as_slice()
        } else {
            &[]
        };
        // A header of the request itself replaces one of the scenario or profile.
        let replaced = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let shared = self.headers.iter().filter(|(name, _)| !replaced(name));
        let headers = shared.chain(own).map(|(name, value)| (name.as_str(), value.as_str()));
        let path = self.encoder.path(&self.base_path, turn);
        RequestHead::new(self.encoder.method(turn), &path, &self.origin, headers)
    }
}

/// The head's part of a request without templates.
fn fixed_ask(http: &HttpSpec) -> Option<HttpContent> {
    let is_template = |text: &String| text.contains("{{");
    if is_template(&http.path) || http.headers.values().any(is_template) {
        return None;
    }
    let headers = http.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Some(HttpContent {
        method: http.method.clone(),
        path: http.path.clone(),
        headers,
        body: Vec::new(),
    })
}

/// Headers of every request: the dialect's, replaced or joined by the profile's, then the scenario's.
fn headers(encoder: &Encoder, scenario: &ScenarioSpec, target: &Target) -> Vec<(String, String)> {
    let key = target.key.as_ref().map(plimsoll_profile::Secret::reveal);
    let mut headers = encoder.static_headers(scenario.stream, key);
    let profile = target.headers.iter().map(|(name, value)| (name, value.reveal()));
    let own = scenario.headers.iter().map(|(name, value)| (name, value.as_str()));
    for (name, value) in profile.chain(own) {
        headers.retain(|(earlier, _)| !earlier.eq_ignore_ascii_case(name));
        headers.push((name.clone(), value.to_owned()));
    }
    headers
}
