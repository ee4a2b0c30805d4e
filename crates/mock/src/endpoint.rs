//! The endpoints: their paths and their content.

use crate::dialect::Dialect;
use crate::prometheus;
use crate::state::MockState;

/// The MIME type of JSON.
pub(crate) const JSON: &str = "application/json";

/// An endpoint that the mock serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// An endpoint of a provider; `POST` only.
    Api(Dialect),
    /// A page of the mock itself; any method.
    Page(Page),
}

/// A page of the mock itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Ok,
    Health,
    Models,
    Metrics,
}

/// Every endpoint: path, endpoint and meaning.
pub(crate) const ENDPOINTS: [(&str, Endpoint, &str); 9] = [
    (
        "/v1/chat/completions",
        Endpoint::Api(Dialect::OpenaiChat),
        "OpenAI chat completions, streamed or not",
    ),
    ("/v1/responses", Endpoint::Api(Dialect::OpenaiResponses), "OpenAI responses, streamed or not"),
    (
        "/v1/messages",
        Endpoint::Api(Dialect::AnthropicMessages),
        "Anthropic messages, streamed or not",
    ),
    (
        "/v1/embeddings",
        Endpoint::Api(Dialect::OpenaiEmbeddings),
        "OpenAI embeddings, as lists of numbers (`encoding_format` is ignored)",
    ),
    ("/v1/models", Endpoint::Page(Page::Models), "the configured models"),
    ("/", Endpoint::Page(Page::Ok), "`ok` and a line end, for plain HTTP load"),
    ("/echo", Endpoint::Page(Page::Ok), "the same"),
    ("/health", Endpoint::Page(Page::Health), "`{\"status\":\"ok\"}`"),
    ("/metrics", Endpoint::Page(Page::Metrics), "live counters in Prometheus' text format"),
];

impl Endpoint {
    /// The endpoint at a path.
    pub(crate) fn at_path(path: &str) -> Option<Self> {
        ENDPOINTS.iter().find(|(known, ..)| *known == path).map(|(_, endpoint, _)| *endpoint)
    }

    /// The wire format of an API endpoint.
    pub(crate) const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Api(dialect) => Some(dialect),
            Self::Page(_) => None,
        }
    }
}

impl Page {
    /// Content type and body.
    pub(crate) fn render(self, state: &MockState) -> (&'static str, Vec<u8>) {
        match self {
            Self::Ok => ("text/plain", b"ok\n".to_vec()),
            Self::Health => (JSON, br#"{"status":"ok"}"#.to_vec()),
            Self::Models => (JSON, models(state.model_names())),
            Self::Metrics => {
                let page = prometheus::render(&state.counters, &state.stats());
                ("text/plain; version=0.0.4", page.into_bytes())
            }
        }
    }
}

fn models<'a>(names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let model = |name: &str| {
        // A string always has a JSON form.
        let id = serde_json::to_string(name).unwrap_or_default();
        format!(r#"{{"id":{id},"object":"model","created":1735689600,"owned_by":"plimsoll-mock"}}"#)
    };
    let models: Vec<String> = names.map(model).collect();
    format!(r#"{{"object":"list","data":[{}]}}"#, models.join(",")).into_bytes()
}
