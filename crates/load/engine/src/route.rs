//! The route of one scenario's turns to one target: encoder, request head, decoder options.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_measure::PolicyDecision;
use plimsoll_plan::{ProxyUrl, Target};
use plimsoll_protocol::{
    Decoder, DecoderOptions, Dialect, Encoder, EncoderOptions, HttpContent, PlainReading,
    RequestContent, Turn,
};
use plimsoll_transport::{EncodedRequest, RequestHead, RequestHeadError, websocket};
use plimsoll_workload::{AgentRole, HttpSpec, ScenarioSpec, StatusSet, WebSocketSpec};

use crate::error::EngineError;
use crate::policy_decision::DecisionClassifier;
use crate::redirect::{Hop, Place};

/// The way of one scenario's turns to one target.
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
    pub(crate) decisions: DecisionClassifier,
    /// The handshake, where the turns go over a WebSocket.
    websocket: Option<WebSocketSpec>,
    /// The proxy that plain requests are written for: whole URLs, and its own credentials.
    proxy: Option<PlainProxy>,
    /// Statuses of good answers, where the profile names them.
    statuses: Option<StatusSet>,
}

/// The model that a scenario asks a target for: its own goes before the target's.
pub(crate) fn model_of<'p>(scenario: &'p ScenarioSpec, target: &'p Target) -> &'p str {
    scenario.model.as_ref().unwrap_or(&target.model)
}

impl Route {
    /// Prepares a route. Responses are read up to `max_body` bytes. `proxy`: one that reads plain
    /// requests. `plays_records`: requests may be recorded ones.
    pub(crate) fn new(
        scenario: &ScenarioSpec,
        target: &Target,
        max_body: u64,
        proxy: Option<&ProxyUrl>,
        plays_records: bool,
    ) -> Result<Self, EngineError> {
        let is_part = scenario.agent.as_ref().is_some_and(AgentRole::is_part);
        // The protocol of a target applies to its models only.
        let dialect = target.protocol.filter(|_| !is_part).unwrap_or(scenario.protocol);
        let options = EncoderOptions {
            model: model_of(scenario, target).to_owned(),
            parameters: scenario.parameters.clone(),
            token_limit: scenario.max_tokens_field,
        };
        let encoder = Encoder::new(dialect, &options)
            .map_err(|cause| EngineError::Protocol { scenario: scenario.name.clone(), cause })?;
        let websocket = (dialect == Dialect::Websocket).then(|| scenario.websocket.clone());
        let mut route = Self {
            headers: headers(&encoder, scenario, target),
            encoder,
            base_path: target.url.path_and_query(),
            origin: format!("{}://{}", target.url.scheme().name(), target.url.authority()),
            head: None,
            stream: scenario.stream && !dialect.is_rpc() || websocket.is_some(),
            decoding: DecoderOptions {
                keep_text: (scenario.turns > 1 || plays_records) && websocket.is_none()
                    || matches!(scenario.agent, Some(AgentRole::Agent(_))),
                max_body_bytes: max_body,
                // An event may be as large as an answer: pictures come in one.
                max_event_bytes: usize::try_from(max_body).unwrap_or(usize::MAX),
                reading: reading(scenario.agent.as_ref()),
            },
            decisions: DecisionClassifier::new(
                scenario.expect.map(PolicyDecision::from),
                &scenario.policy_decision,
            ),
            websocket,
            proxy: proxy.map(PlainProxy::of),
            statuses: scenario.http.as_ref().and_then(|http| http.expect.clone()),
        };
        if !plays_records {
            route.head = route
                .prepared_head(scenario)
                .map_err(|cause| EngineError::Head { scenario: scenario.name.clone(), cause })?;
        }
        Ok(route)
    }

    /// Whether responses are requested as streams.
    pub(crate) const fn streams(&self) -> bool {
        self.stream
    }

    /// Whether a status counts as success; `None` where the dialect decides.
    pub(crate) fn expects(&self, status: u16) -> Option<bool> {
        self.statuses.as_ref().map(|statuses| statuses.has(status))
    }

    /// Scheme and authority of the target.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Where an answer with this `Location` sends a turn's request; `None` where it cannot be
    /// followed. `hop`: where the request went before.
    pub(crate) fn next_hop(
        &self,
        turn: &Turn<'_>,
        hop: Option<&Hop>,
        status: u16,
        location: &str,
    ) -> Option<Hop> {
        let path = self.path(turn);
        let (method, origin) = (self.encoder.method(turn), &self.origin);
        let path = if path.is_empty() { "/" } else { &*path };
        let from = hop.map_or(Place { method, origin, path }, Hop::place);
        let next = Hop::new(from, status, location)?;
        let with_body = next.with_body && hop.is_none_or(|hop| hop.with_body);
        Some(Hop { with_body, ..next })
    }

    /// The head of a turn's request, sent to another place.
    ///
    /// # Errors
    /// If the place cannot stand in a head.
    pub(crate) fn head_to(
        &self,
        turn: &Turn<'_>,
        hop: &Hop,
    ) -> Result<RequestHead, RequestHeadError> {
        self.render_to(turn, hop.place(), |name| hop.keeps(name, &self.origin))
    }

    /// Whether turns go over a WebSocket of their conversation.
    pub(crate) const fn is_websocket(&self) -> bool {
        self.websocket.is_some()
    }

    /// The subprotocol that a WebSocket's handshake asks for.
    pub(crate) fn subprotocol(&self) -> Option<&str> {
        self.websocket.as_ref()?.subprotocol.as_deref()
    }

    /// The largest message that is read from a WebSocket, in bytes.
    pub(crate) fn max_message(&self) -> usize {
        let of_body = usize::try_from(self.decoding.max_body_bytes).unwrap_or(usize::MAX);
        self.decoding.max_event_bytes.min(of_body)
    }

    /// A decoder for the responses of this route.
    pub(crate) fn decoder(&self) -> Decoder {
        Decoder::new(self.encoder.dialect(), self.stream, self.decoding)
    }

    /// The head of a turn's request.
    ///
    /// # Errors
    /// If a template of plain HTTP gives a value that cannot stand in a head.
    pub(crate) fn head(&self, turn: &Turn<'_>) -> Result<Cow<'_, RequestHead>, RequestHeadError> {
        self.head
            .as_ref()
            .map_or_else(|| self.render(turn).map(Cow::Owned), |head| Ok(Cow::Borrowed(head)))
    }

    /// The request of a turn, with this id.
    ///
    /// # Errors
    /// Why the turn cannot be sent, in words.
    pub(crate) fn encode(
        &self,
        turn: &Turn<'_>,
        id: Option<&[u8]>,
    ) -> Result<(Cow<'_, RequestHead>, EncodedRequest), String> {
        let head = self.head(turn).map_err(|error| error.to_string())?;
        let mut encoded = EncodedRequest { head: Vec::new(), body: Vec::new() };
        let written = self.encoder.encode_body(turn, &mut encoded.body);
        written.map_err(|error| error.to_string())?;
        head.render(id, encoded.body.len(), &mut encoded.head);
        Ok((head, encoded))
    }

    /// Method and URL of a request, without its query: that may have a key.
    pub(crate) fn request_line(&self, turn: &Turn<'_>) -> String {
        let path = self.encoder.path(&self.base_path, turn);
        let path = path.split('?').next().unwrap_or_default();
        format!("{} {}{path}", self.encoder.method(turn), self.origin)
    }

    fn prepared_head(
        &self,
        scenario: &ScenarioSpec,
    ) -> Result<Option<RequestHead>, RequestHeadError> {
        // Decisions on approvals name them in their paths.
        if matches!(scenario.agent, Some(AgentRole::Approvals { .. })) {
            return Ok(None);
        }
        let content = match &scenario.http {
            Some(http) if self.encoder.dialect() == Dialect::Http => match fixed_head(http) {
                None => return Ok(None),
                Some(content) => content,
            },
            // Each message has headers of its own.
            _ if self.encoder.dialect().is_rpc() => return Ok(None),
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
        let path = self.path(turn);
        let (method, origin) = (self.encoder.method(turn), &self.origin);
        self.render_to(turn, Place { method, origin, path: &path }, |_| true)
    }

    fn render_to(
        &self,
        turn: &Turn<'_>,
        to: Place<'_>,
        keeps: impl Fn(&str) -> bool,
    ) -> Result<RequestHead, RequestHeadError> {
        let own = turn.own_headers();
        // A header of the request itself replaces one of the scenario or profile.
        let shared = self
            .headers
            .iter()
            .filter(|(name, _)| !own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
        let headers = shared.chain(own.iter()).map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = headers.filter(|(name, _)| keeps(name));
        let proxy = self.proxy.as_ref().filter(|_| to.origin.starts_with("http://"));
        let Some(proxy) = proxy else {
            return RequestHead::new(to.method, to.path, to.origin, headers);
        };
        let own = proxy.credentials.iter().map(|own| ("proxy-authorization", own.as_str()));
        let url = format!("{}{}", to.origin, to.path);
        RequestHead::new(to.method, &url, to.origin, headers.chain(own))
    }
}

impl Route {
    /// The path of a turn's request. The handshake of a WebSocket may have its own, to which the
    /// target's query is added.
    fn path<'a>(&'a self, turn: &Turn<'a>) -> Cow<'a, str> {
        let own = self.websocket.as_ref().and_then(|websocket| websocket.path.as_deref());
        let Some(own) = own else { return self.encoder.path(&self.base_path, turn) };
        match self.base_path.split_once('?') {
            Some((_, query)) if !query.is_empty() => {
                let join = if own.contains('?') { '&' } else { '?' };
                Cow::Owned(format!("{own}{join}{query}"))
            }
            _ => Cow::Borrowed(own),
        }
    }
}

/// A proxy that reads plain requests.
#[derive(Clone, Debug, Default)]
struct PlainProxy {
    /// The value of `proxy-authorization`.
    credentials: Option<String>,
}

impl PlainProxy {
    fn of(proxy: &ProxyUrl) -> Self {
        let credentials = proxy.credentials.as_ref().map(|(user, password)| {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
        });
        Self { credentials }
    }
}

/// Values read from successful responses to an agent's requests.
const fn reading(role: Option<&AgentRole>) -> PlainReading {
    match role {
        None | Some(AgentRole::Agent(_) | AgentRole::Recorded { .. }) => PlainReading::Nothing,
        Some(AgentRole::Tools { .. }) => PlainReading::ToolResult,
        Some(AgentRole::Approvals { .. }) => PlainReading::Approval,
    }
}

/// The request line and headers of a scenario, where they hold no templates.
fn fixed_head(http: &HttpSpec) -> Option<HttpContent> {
    if http.path.contains("{{") || http.headers.values().any(|value| value.contains("{{")) {
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

/// `user-agent` of requests, unless the profile sets another.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Headers of every request: ours and the dialect's; the profile's and then the scenario's replace
/// those or join them.
fn headers(encoder: &Encoder, scenario: &ScenarioSpec, target: &Target) -> Vec<(String, String)> {
    let key = target.key.as_ref().map(plimsoll_plan::Secret::reveal);
    let mut headers = vec![("user-agent".to_owned(), USER_AGENT.to_owned())];
    headers.extend(encoder.static_headers(scenario.stream, key));
    if encoder.dialect() == Dialect::Websocket {
        let upgrade = websocket::upgrade_headers(scenario.websocket.subprotocol.as_deref());
        headers.extend(upgrade.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
    let profile = target.headers.iter().map(|(name, value)| (name, value.reveal()));
    let own = scenario.headers.iter().map(|(name, value)| (name, value.as_str()));
    for (name, value) in profile.chain(own) {
        headers.retain(|(earlier, _)| !earlier.eq_ignore_ascii_case(name));
        headers.push((name.clone(), value.to_owned()));
    }
    headers
}

#[cfg(test)]
mod tests;
