//! A parsed LLM request.

use std::sync::Arc;

use bytes::Bytes;
use plimsoll_gateway_dialect::{Dialect, DialectError, Endpoint, Streaming, Translator};
use plimsoll_gateway_store::CacheKey;

use super::parse_cache::BodyDigest;
use crate::error_response::ErrorResponse;
use crate::spec::DialectSpec;

/// A parsed LLM request.
pub(crate) struct LlmRequest {
    pub(super) endpoint: Endpoint,
    pub(super) streaming: Streaming,
    pub(super) body: Bytes,
    /// An estimate.
    pub(super) prompt_tokens: u64,
    pub(super) max_tokens: Option<u64>,
    pub(super) model: Arc<str>,
    /// Where the upstream speaks another dialect.
    pub(crate) translator: Option<Translator>,
    /// The digest of the body, where the result of parsing may be cached.
    pub(super) digest: Option<BodyDigest>,
    /// The key of its response in the cache, if already known.
    pub(super) cache_key: Option<CacheKey>,
}

impl LlmRequest {
    /// A chat that the gateway itself sends: not streamed, not paid for and not cached.
    pub(crate) fn chat(body: Bytes, model: &str, translator: Option<Translator>) -> Self {
        Self {
            endpoint: Endpoint::Chat,
            streaming: Streaming::No,
            body,
            prompt_tokens: 0,
            max_tokens: None,
            model: Arc::from(model),
            translator,
            digest: None,
            cache_key: None,
        }
    }

    /// The endpoint that the upstream is asked at, in whose dialect it responds.
    pub(super) fn upstream_endpoint(&self) -> Endpoint {
        self.translator.map_or(self.endpoint, Translator::upstream_endpoint)
    }
}

impl From<DialectSpec> for Dialect {
    fn from(spec: DialectSpec) -> Self {
        match spec {
            DialectSpec::Openai => Self::OpenAi,
            DialectSpec::Anthropic => Self::Anthropic,
        }
    }
}

/// The path without the route's prefix.
pub(super) fn strip_prefix<'a>(path: &'a str, prefix: Option<&str>) -> &'a str {
    prefix.and_then(|prefix| path.strip_prefix(prefix)).unwrap_or(path)
}

/// The error response for a body that does not follow its dialect.
pub(super) fn dialect_error(error: &DialectError) -> ErrorResponse {
    match error.status() {
        400 => ErrorResponse::bad_request(error.to_string()),
        _ => ErrorResponse::bad_gateway(error.to_string()),
    }
}
