//! The endpoints: their paths and their content.

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use crate::dialect::Dialect::{
    self, AnthropicMessages, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiResponses,
};
use crate::state::MockState;
use crate::{prometheus, websocket};

/// The MIME type of JSON.
pub(crate) const JSON: &str = "application/json";

/// Whether a request declares a JSON body.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

/// An endpoint that the mock serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// An endpoint of a provider; `POST` only.
    Api(Dialect),
    /// The MCP server; `POST`, `GET` and `DELETE`.
    Mcp,
    /// An A2A agent, `POST` only, or its card, `GET` only.
    A2a,
    /// The chat over a WebSocket.
    WebSocket,
    /// A page of the mock itself; any method.
    Page(Page),
}

/// A page of the mock itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Ok,
    Health,
    Get,
    Models,
    Metrics,
}

use Endpoint::{A2a, Api, Mcp, WebSocket};

/// All endpoints: path, endpoint and description.
pub(crate) const ENDPOINTS: [(&str, Endpoint, &str); 17] = [
    ("/v1/chat/completions", Api(OpenaiChat), "OpenAI chat completions, streamed or not"),
    ("/v1/completions", Api(OpenaiCompletions), "OpenAI text completions, streamed or not"),
    ("/v1/responses", Api(OpenaiResponses), "OpenAI responses, streamed or not"),
    ("/v1/messages", Api(AnthropicMessages), "Anthropic messages, streamed or not"),
    (
        "/v1/embeddings",
        Api(OpenaiEmbeddings),
        "OpenAI embeddings, as lists of numbers (`encoding_format` is ignored)",
    ),
    ("/mcp", Mcp, "an MCP server over Streamable HTTP, with and without sessions"),
    ("/a2a", A2a, "the default agent over A2A 1.0 and 0.3"),
    ("/a2a/{agent}", A2a, "another agent"),
    (
        "/.well-known/agent-card.json",
        A2a,
        "the default agent's card; of others below `/a2a/{agent}`",
    ),
    ("/.well-known/agent.json", A2a, "the same, at its old path"),
    (
        websocket::PATH,
        WebSocket,
        "a chat: `{\"message\": \"...\"}` as text frames, answered by `delta` and `done`",
    ),
    ("/v1/models", Endpoint::Page(Page::Models), "the configured models"),
    ("/", Endpoint::Page(Page::Ok), "`ok` and a line end, for plain HTTP load"),
    ("/echo", Endpoint::Page(Page::Ok), "the same"),
    ("/health", Endpoint::Page(Page::Health), "`{\"status\":\"ok\"}`"),
    ("/get", Endpoint::Page(Page::Get), "a small JSON document, for the full stack of a gateway"),
    ("/metrics", Endpoint::Page(Page::Metrics), "live counters in Prometheus' text format"),
];

impl Endpoint {
    /// The endpoint at a path.
    pub(crate) fn at_path(path: &str) -> Option<Self> {
        let found = ENDPOINTS.iter().find(|(known, ..)| *known == path);
        found
            .map(|(_, endpoint, _)| *endpoint)
            .or_else(|| path.starts_with("/a2a/").then_some(Self::A2a))
    }

    /// The wire format of an API endpoint.
    pub(crate) const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Api(dialect) => Some(dialect),
            Self::WebSocket => Some(Dialect::Websocket),
            Self::Mcp | Self::A2a | Self::Page(_) => None,
        }
    }
}

impl Page {
    /// Content type and body.
    pub(crate) fn render(self, state: &MockState) -> (&'static str, Vec<u8>) {
        match self {
            Self::Ok => ("text/plain", b"ok\n".to_vec()),
            Self::Health => (JSON, br#"{"status":"ok"}"#.to_vec()),
            Self::Get => (JSON, br#"{"args":{},"headers":{},"url":"/get"}"#.to_vec()),
            Self::Models => (JSON, models(state.model_names())),
            Self::Metrics => {
                let page = prometheus::render(&state.stats());
                ("text/plain; version=0.0.4", page.into_bytes())
            }
        }
    }
}

fn models<'a>(names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let models: Vec<String> = names.map(model_json).collect();
    format!(r#"{{"object":"list","data":[{}]}}"#, models.join(",")).into_bytes()
}

fn model_json(name: &str) -> String {
    // A string always has a JSON form.
    let id = serde_json::to_string(name).unwrap_or_default();
    format!(r#"{{"id":{id},"object":"model","created":1735689600,"owned_by":"plimsoll-mock"}}"#)
}
