//! The way of one scenario's turns to one target: encoder, request head, decoder options.

use std::borrow::Cow;

use plimsoll_measure::PolicyDecision;
use plimsoll_profile::Target;
use plimsoll_protocol::{
    Decoder, DecoderOptions, Dialect, Encoder, EncoderOptions, HttpContent, RequestContent, Turn,
};
use plimsoll_transport::{RequestHead, RequestHeadError};
use plimsoll_workload::{HttpSpec, ScenarioSpec};

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
}

impl Route {
    /// Prepares a route. Responses are read up to `max_body` bytes.
    pub(crate) fn new(
        scenario: &ScenarioSpec,
        target: &Target,
        max_body: u64,
    ) -> Result<Self, EngineError> {
        let dialect = target.protocol.unwrap_or(scenario.protocol);
        let options = EncoderOptions {
            model: target.model.clone(),
            parameters: scenario.parameters.clone(),
            token_limit: scenario.max_tokens_field,
        };
        let encoder = Encoder::new(dialect, &options)
            .map_err(|cause| EngineError::Protocol { scenario: scenario.name.clone(), cause })?;
        let mut route = Self {
            headers: headers(&encoder, scenario, target),
            encoder,
            base_path: target.url.path_and_query(),
            origin: format!("{}://{}", target.url.scheme().name(), target.url.authority()),
            head: None,
            stream: scenario.stream,
            decoding: DecoderOptions {
                keep_text: scenario.turns > 1,
                max_body_bytes: max_body,
                ..DecoderOptions::default()
            },
            decisions: DecisionClassifier::new(
                scenario.expect.map(PolicyDecision::from),
                &scenario.policy_decision,
            ),
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

    /// A decoder for the responses of this route.
    pub(crate) const fn decoder(&self) -> Decoder {
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

    fn prepared_head(
        &self,
        scenario: &ScenarioSpec,
    ) -> Result<Option<RequestHead>, RequestHeadError> {
        let content = match &scenario.http {
            Some(http) if self.encoder.dialect() == Dialect::Http => match fixed_head(http) {
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
    let key = target.key.as_ref().map(plimsoll_profile::Secret::reveal);
    let mut headers = vec![("user-agent".to_owned(), USER_AGENT.to_owned())];
    headers.extend(encoder.static_headers(scenario.stream, key));
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
