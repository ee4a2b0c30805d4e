//! The cache of responses: equal requests at the same time are sent upstream once.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use plimsoll_gateway_dialect::{DialectError, write_cache_key};
use plimsoll_gateway_store::{CacheKey, CachedResponse, Followed, Lead, Lookup};
use ring::digest::{Context, SHA256};
use tokio::time::timeout;

use super::cache_write::CacheWrite;
use super::parse_cache::ParsedRequest;
use super::ready_response::ReadyResponse;
use super::request::{LlmRequest, dialect_error};
use super::response::{self, Completion};
use super::send::send_upstream;
use crate::budget::RequestReservation;
use crate::clock;
use crate::error_response::ErrorResponse;
use crate::forward::SLOW_UPSTREAM;
use crate::identity::Identity;
use crate::request_context::RequestContext;
use crate::respond::Header;
use crate::response_body::ResponseBody;
use crate::router::Proxy;

/// Serves a request from the cache or the upstream, within the tenant's budget.
pub(super) async fn serve(
    context: &mut RequestContext,
    parts: Parts,
    request: LlmRequest,
    proxy: &Proxy,
) -> Result<ReadyResponse, ErrorResponse> {
    let reservation = match &context.config.budgets {
        None => None,
        Some(budgets) => {
            let tokens = (request.prompt_tokens, request.max_tokens);
            Some(budgets.reserve(&context.worker.store, &context.identity, tokens).await?)
        }
    };
    let remaining = reservation.as_ref().map(RequestReservation::remaining_header);
    let mut ready =
        Box::pin(look_up_or_fetch(context, parts, request, (proxy, reservation))).await?;
    ready.headers.extend(remaining);
    Ok(ready)
}

async fn look_up_or_fetch(
    context: &mut RequestContext,
    parts: Parts,
    request: LlmRequest,
    (proxy, reservation): (&Proxy, Option<RequestReservation>),
) -> Result<ReadyResponse, ErrorResponse> {
    let Some(key) = cache_key(context, &parts, &request, &proxy.upstream.name)? else {
        let mut ready = fetch(context, parts, (request, proxy), (reservation, None)).await?;
        let bypassed = context.config.spec.cache.is_some();
        ready.headers.extend(bypassed.then(|| cache_header("bypass")));
        return Ok(ready);
    };
    let worker = Rc::clone(&context.worker);
    let lead = match worker.store.lookup(clock::now(), key).await {
        Lookup::Hit(answer) => return Ok(hit(context, &answer)),
        Lookup::Lead(lead) => Some(lead),
        Lookup::Follow(follow) => {
            let followed = timeout(proxy.timeout.0, follow.wait()).await;
            match followed.map_err(|_| ErrorResponse::upstream_timeout(SLOW_UPSTREAM))? {
                Followed::Response(answer) => return Ok(hit(context, &answer)),
                Followed::Lead(lead) => Some(lead),
                Followed::Alone => None,
            }
        }
    };
    record(context, "miss");
    let mut ready = fetch(context, parts, (request, proxy), (reservation, lead)).await?;
    ready.headers.push(cache_header("miss"));
    Ok(ready)
}

/// The key of the response; `None` where the cache is disabled or bypassed.
fn cache_key(
    context: &mut RequestContext,
    parts: &Parts,
    request: &LlmRequest,
    upstream: &str,
) -> Result<Option<CacheKey>, ErrorResponse> {
    let config = Arc::clone(&context.config);
    let Some(cache) = &config.spec.cache else { return Ok(None) };
    if parts.headers.contains_key(&cache.bypass_header) {
        record(context, "bypass");
        return Ok(None);
    }
    if let Some(key) = request.cache_key {
        return Ok(Some(key));
    }
    let key =
        digest((&context.identity, upstream), request).map_err(|error| dialect_error(&error))?;
    if let Some(digest) = request.digest {
        let parsed = ParsedRequest {
            cache_key: key,
            streaming: request.streaming,
            prompt_tokens: request.prompt_tokens,
            max_tokens: request.max_tokens,
            model: Arc::clone(&request.model),
        };
        context.worker.parse_cache.insert(digest, parsed);
    }
    Ok(Some(key))
}

/// Identities of different scopes share no responses, nor do upstreams.
fn digest(
    (identity, upstream): (&Identity, &str),
    request: &LlmRequest,
) -> Result<CacheKey, DialectError> {
    let mut hash = Context::new(&SHA256);
    identity.write_scope(&mut hash);
    hash.update(&(upstream.len() as u64).to_be_bytes());
    hash.update(upstream.as_bytes());
    write_cache_key(request.endpoint, &request.body, |bytes| hash.update(bytes))?;
    let mut key = [0; 32];
    key.copy_from_slice(hash.finish().as_ref());
    Ok(CacheKey(key))
}

/// Records the result of the look-up.
fn record(context: &mut RequestContext, result: &'static str) {
    context.worker.metrics().count_cache(result);
    if context.config.observes_requests {
        context.llm_info().cache = Some(result);
    }
}

fn cache_header(result: &'static str) -> Header {
    (HeaderName::from_static("x-cache"), HeaderValue::from_static(result))
}

/// A cached response; a stream keeps its frames. Its reservation is released by the caller.
fn hit(context: &mut RequestContext, answer: &CachedResponse) -> ReadyResponse {
    record(context, "hit");
    let body = match answer.frames.as_slice() {
        [whole] => ResponseBody::Full(whole.clone()),
        frames => ResponseBody::Frames(frames.iter().cloned().collect()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    for (name, value) in &answer.headers {
        let name = HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value.clone())) {
            response.headers_mut().insert(name, value);
        }
    }
    ReadyResponse { response, headers: vec![cache_header("hit")] }
}

async fn fetch(
    context: &mut RequestContext,
    parts: Parts,
    (request, proxy): (LlmRequest, &Proxy),
    (reservation, lead): (Option<RequestReservation>, Option<Lead>),
) -> Result<ReadyResponse, ErrorResponse> {
    let ttl = context.config.spec.cache.as_ref().map_or(Duration::ZERO, |cache| cache.ttl.0);
    let upstream = send_upstream(context, parts, &request, proxy).await?;
    let cache_write = lead.map(|lead| CacheWrite { lead, ttl });
    let completion = Completion { reservation, cache_write };
    response::prepare(context, upstream, (&request, proxy), completion).await
}
