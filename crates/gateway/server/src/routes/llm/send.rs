//! Sends LLM requests upstream, translated if the upstream uses another dialect.

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Uri};
use plimsoll_gateway_dialect::Dialect;

use super::request::{LlmRequest, dialect_error};
use crate::exchange::forward::{self, UpstreamResponse};
use crate::exchange::request_context::RequestContext;
use crate::http::content::ask_for_readable;
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::RequestBody;
use crate::layers::auth::bearer;
use crate::upstream::proxy::Proxy;

/// The `anthropic-version` to send if the caller sends none.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Sends a request upstream, translated if the upstream uses another dialect.
pub(crate) async fn send_upstream(
    context: &RequestContext,
    parts: &mut Parts,
    request: &LlmRequest,
    proxy: &Proxy,
) -> Result<Box<UpstreamResponse>, ErrorResponse> {
    let body = match &request.translator {
        None => request.body.clone(),
        Some(translator) => {
            let endpoint = translator.upstream_endpoint();
            parts.uri = Uri::from_static(endpoint.path());
            translate_headers(&mut parts.headers, endpoint.dialect());
            let body = translator.request(&request.body, proxy.upstream.limit_name);
            Bytes::from(body.map_err(|error| dialect_error(&error))?)
        }
    };
    // Responses that are read or cached must not be compressed.
    if request.is_answer_read(&context.config) {
        ask_for_readable(&mut parts.headers);
    }
    forward::send(context, proxy, parts, RequestBody::Full(body)).await
}

/// Moves the API key to the header of the upstream's dialect, and adds or removes the API version.
fn translate_headers(headers: &mut HeaderMap, upstream: Dialect) {
    let api_key = HeaderName::from_static("x-api-key");
    let version = HeaderName::from_static("anthropic-version");
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if upstream == Dialect::Anthropic {
        headers.entry(version).or_insert(HeaderValue::from_static(ANTHROPIC_VERSION));
        let key = headers.remove(AUTHORIZATION);
        let key = key.as_ref().and_then(|key| bearer(key.as_bytes()));
        if let Some(Ok(key)) = key.map(HeaderValue::from_bytes) {
            headers.insert(api_key, key);
        }
        return;
    }
    headers.remove(version);
    let Some(key) = headers.remove(api_key) else { return };
    let value = [b"Bearer ", key.as_bytes()].concat();
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(AUTHORIZATION, value);
    }
}
