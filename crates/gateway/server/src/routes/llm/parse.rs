//! Parsing LLM requests, and evaluating their texts by the policy.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use plimsoll_gateway_dialect::{Endpoint, RequestView, Translator};
use plimsoll_gateway_inspect::Source;

use super::request::{LlmRequest, dialect_error};
use crate::exchange::document;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::json_body;
use crate::http::error_response::ErrorResponse;
use crate::upstream::proxy::{Proxy, strip_prefix};

/// Reads and parses a request, and evaluates its texts.
pub(super) async fn parse(
    context: &mut RequestContext,
    parts: &Parts,
    body: Incoming,
    proxy: &Proxy,
) -> Result<LlmRequest, ErrorResponse> {
    let path = strip_prefix(parts.uri.path(), proxy.strip.as_deref());
    let endpoint = Endpoint::from_path(path)
        .ok_or_else(|| ErrorResponse::not_found(format!("`{path}` is not an LLM endpoint")))?;
    let upstream = proxy.upstream.dialect;
    if endpoint.counterpart(upstream).is_none() {
        let message = format!("`{path}` cannot be translated to the dialect of the upstream");
        return Err(ErrorResponse::not_found(message));
    }
    let body = json_body(context, parts, body).await?;
    let translator = Translator::between(endpoint.dialect(), upstream);
    let request = parse_body(context, endpoint, body, translator).await?;
    if context.config.observes_requests {
        let info = context.llm_info();
        info.model = Some(Arc::clone(&request.model));
        info.left_out.clone_from(&request.left_out);
    }
    Ok(request)
}

async fn parse_body(
    context: &mut RequestContext,
    endpoint: Endpoint,
    body: Bytes,
    translator: Option<Translator>,
) -> Result<LlmRequest, ErrorResponse> {
    let left_out = match translator {
        Some(translator) => translator.left_out(&body).map_err(|error| dialect_error(&error))?,
        None => None,
    };
    let needs_tokens = context.config.layers.budgets.is_some() || translator.is_some();
    let view = RequestView::read(endpoint, &body).map_err(|error| dialect_error(&error))?;
    let redacted = document::redact(context, &body, Source::Protocol).await?;
    let body = redacted.unwrap_or(body);
    Ok(LlmRequest {
        endpoint,
        streaming: view.streaming,
        body,
        prompt_tokens: if needs_tokens { view.prompt_tokens } else { 0 },
        max_tokens: view.max_tokens,
        answers: view.answers,
        model: Arc::from(view.model),
        translator,
        left_out: left_out.map(Arc::from),
    })
}
