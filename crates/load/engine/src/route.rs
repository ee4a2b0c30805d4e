//! The way of one scenario's turns to one target: encoder, request head, decoder options.

use std::borrow::Cow;

use plimsoll_measure::PolicyDecision;
use plimsoll_plan::Target;
use plimsoll_protocol::{
    Decoder, DecoderOptions, Dialect, Encoder, EncoderOptions, HttpContent, PlainReading,
    RequestContent, Turn,
};
use plimsoll_transport::{RequestHead, RequestHeadError, websocket};
use plimsoll_workload::{AgentRole, HttpSpec, ScenarioSpec, WebSocketSpec};

use crate::error::EngineError;
use crate::policy_decision::DecisionClassifier;

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
}

impl Route {
    /// Prepares a route. Responses are read up to `max_body` bytes.
    pub(crate) fn new(
        scenario: &ScenarioSpec,
        target: &Target,
        max_body: u64,
    ) -> Result<Self, EngineError> {
        let is_part = scenario.agent.as_ref().is_some_and(AgentRole::is_part);
        // The target's protocol is that of its models.
        let dialect = target.protocol.filter(|_| !is_part).unwrap_or(scenario.protocol);
        let options = EncoderOptions {
            model: scenario.model.as_ref().unwrap_or(&target.model).clone(),
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
                keep_text: scenario.turns > 1 && websocket.is_none()
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
        };
        route.head = route
            .prepared_head(scenario)
            .map_err(|cause| EngineError::Head { scenario: scenario.name.clone(), cause })?;
        Ok(route)
    }

    /// Whether responses are requested as streams.
    pub(crate) const fn streams(&self) -> bool {
        self.stream
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
        let own = turn.own_headers();
        // A header of the request itself replaces one of the scenario or profile.
        let replaced = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let shared = self.headers.iter().filter(|(name, _)| !replaced(name));
        let headers = shared.chain(own.iter()).map(|(name, value)| (name.as_str(), value.as_str()));
        let path = self.path(turn);
        RequestHead::new(self.encoder.method(turn), &path, &self.origin, headers)
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

/// What is read from the successes of an agent's parts.
const fn reading(role: Option<&AgentRole>) -> PlainReading {
    match role {
        None | Some(AgentRole::Agent(_)) => PlainReading::Nothing,
        Some(AgentRole::Tools { .. }) => PlainReading::ToolResult,
        Some(AgentRole::Approvals { .. }) => PlainReading::Approval,
    }
}

/// The request line and headers of a scenario, where they hold no templates.
fn fixed_head(http: &HttpSpec) -> Option<HttpContent> {
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

/// Who asks, unless the profile says otherwise.
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
