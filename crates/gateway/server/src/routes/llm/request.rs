//! A parsed LLM request.

use std::sync::Arc;

use bytes::Bytes;
use plimsoll_gateway_dialect::{DialectError, Endpoint, Streaming, Translator};

use crate::assembly::config::Config;
use crate::http::error_response::ErrorResponse;
use crate::layers::budget::Demand;

/// A parsed LLM request.
pub(crate) struct LlmRequest {
    pub(super) endpoint: Endpoint,
    pub(super) streaming: Streaming,
    pub(super) body: Bytes,
    /// An estimate.
    pub(super) prompt_tokens: u64,
    pub(super) max_tokens: Option<u64>,
    /// Requested answers.
    pub(super) answers: u64,
    pub(super) model: Arc<str>,
    /// Set if the upstream uses another dialect.
    pub(crate) translator: Option<Translator>,
    /// The members that the translation omits.
    pub(super) left_out: Option<Arc<str>>,
}

impl LlmRequest {
    /// A chat of the gateway itself: not streamed and not cached.
    pub(crate) fn chat(body: Bytes, model: &str, translator: Option<Translator>) -> Self {
        Self {
            endpoint: Endpoint::Chat,
            streaming: Streaming::No,
            body,
            prompt_tokens: 0,
            max_tokens: None,
            answers: 1,
            model: Arc::from(model),
            translator,
            left_out: None,
        }
    }

    /// Its maximum usage of a budget. A quarter of its bytes covers the prompt with tools and
    /// schemas; embeddings have no completion.
    pub(crate) fn demand(&self) -> Demand {
        let bytes = self.body.len() as u64;
        let completes = self.endpoint != Endpoint::Embeddings;
        Demand {
            prompt: self.prompt_tokens,
            prompt_limit: self.prompt_tokens.max(bytes.div_ceil(4)),
            max_tokens: if completes { self.max_tokens } else { Some(0) },
            answers: self.answers,
        }
    }

    /// Whether a layer reads or stores the answer, which must then not be encoded.
    pub(super) fn is_answer_read(&self, config: &Config) -> bool {
        self.translator.is_some() || config.observes_requests || config.layers.read_answers()
    }

    /// The upstream's endpoint, which defines the dialect of the response.
    pub(crate) fn upstream_endpoint(&self) -> Endpoint {
        self.translator.map_or(self.endpoint, Translator::upstream_endpoint)
    }
}

/// The error response for a body that does not follow its dialect.
pub(super) fn dialect_error(error: &DialectError) -> ErrorResponse {
    match error.status() {
        400 => ErrorResponse::bad_request(error.to_string()),
        _ => ErrorResponse::bad_gateway(error.to_string()),
    }
}
