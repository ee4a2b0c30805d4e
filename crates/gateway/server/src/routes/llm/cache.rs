//! The response cache: concurrent equal requests are sent upstream once.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use plimsoll_gateway_dialect::Streaming;
use plimsoll_gateway_store::{CacheKey, CachedResponse, Followed, Lead, Lookup};
use tokio::time::timeout;

use super::ReadyResponse;
use super::cache_key::{body_key, prevents_caching, response_key};
use super::cache_write::CacheWrite;
use super::request::{LlmRequest, dialect_error};
use super::response::{self, Completion};
use super::send::send_upstream;
use crate::base::clock;
use crate::base::memory::UNCOUNTED;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::Header;
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::no_memory;
use crate::layers::budget::RequestReservation;
use crate::layers::cache::CACHE_RESULTS;
use crate::upstream::Upstream;
use crate::upstream::proxy::Proxy;

/// Serves a request from the cache or the upstream, within the tenant's budget.
pub(super) async fn serve(
    context: &mut RequestContext,
    parts: &mut Parts,
    request: &LlmRequest,
    proxy: &Proxy,
) -> Result<ReadyResponse, ErrorResponse> {
    let reservation = match &context.config.layers.budgets {
        None => None,
        Some(budgets) => {
            let (store, identity) = (&context.worker.store, &context.identity);
            Some(budgets.reserve(store, identity, request.demand()).await?)
        }
    };
    let remaining = reservation.as_ref().and_then(RequestReservation::remaining_header);
    let mut ready = look_up_or_fetch(context, parts, request, proxy, reservation).await?;
    ready.headers.extend(remaining);
    ready.headers.extend(request.left_out.as_deref().and_then(left_out_header));
    Ok(ready)
}

async fn look_up_or_fetch(
    context: &mut RequestContext,
    parts: &mut Parts,
    request: &LlmRequest,
    proxy: &Proxy,
    reservation: Option<RequestReservation>,
) -> Result<ReadyResponse, ErrorResponse> {
    let Some(key) = cache_key(context, parts, request, &proxy.upstream)? else {
        let fetched = fetch(context, parts, request, proxy, reservation, None);
        let mut ready = Box::pin(fetched).await?;
        let bypassed = context.config.layers.cache.is_some();
        ready.headers.extend(bypassed.then(|| cache_header("bypass")));
        return Ok(ready);
    };
    let worker = Rc::clone(&context.worker);
    let lead = match worker.store.lookup(clock::now(), key).await {
        Lookup::Hit(answer) => return hit(context, &answer),
        Lookup::Lead(lead) => Some(lead),
        Lookup::Follow(follow) => {
            match timeout(patience(context, request, proxy), follow.wait()).await {
                Ok(Followed::Response(answer)) => return hit(context, &answer),
                Ok(Followed::Lead(lead)) => Some(lead),
                // The other request is slow, which is not a failure of the upstream.
                Ok(Followed::Alone) | Err(_) => None,
            }
        }
    };
    record(context, "miss");
    let fetched = fetch(context, parts, request, proxy, reservation, lead);
    let mut ready = Box::pin(fetched).await?;
    ready.headers.push(cache_header("miss"));
    Ok(ready)
}

/// How long a request waits for the answer to an equal one: a streamed answer should start soon, a
/// whole answer is only useful when complete.
fn patience(context: &RequestContext, request: &LlmRequest, proxy: &Proxy) -> Duration {
    let wait = context.config.layers.cache.as_ref().map_or(Duration::ZERO, |cache| cache.wait.0);
    match request.streaming {
        Streaming::No => proxy.timeout.0,
        Streaming::Yes | Streaming::WithUsage => wait.min(proxy.timeout.0),
    }
}

/// The key of the response; `None` if the cache is disabled or bypassed.
fn cache_key(
    context: &mut RequestContext,
    parts: &Parts,
    request: &LlmRequest,
    upstream: &Upstream,
) -> Result<Option<CacheKey>, ErrorResponse> {
    let config = Arc::clone(&context.config);
    let Some(cache) = &config.layers.cache else { return Ok(None) };
    if parts.headers.contains_key(&cache.bypass_header) || prevents_caching(&parts.headers) {
        record(context, "bypass");
        return Ok(None);
    }
    let body = body_key(request.endpoint, &request.body).map_err(|error| dialect_error(&error))?;
    Ok(Some(response_key(&config, &context.identity, parts, upstream, &body)))
}

/// Records the result of the look-up.
fn record(context: &mut RequestContext, result: &'static str) {
    context.worker.metrics().count(&CACHE_RESULTS, &[result]);
    if context.config.observes_requests {
        context.llm_info().cache = Some(result);
    }
}

/// Names the request members that were not sent to the provider.
fn left_out_header(names: &str) -> Option<Header> {
    let value = HeaderValue::from_str(names).ok()?;
    Some((HeaderName::from_static("x-gateway-left-out"), value))
}

fn cache_header(result: &'static str) -> Header {
    (HeaderName::from_static("x-cache"), HeaderValue::from_static(result))
}

/// A cached response; a stream keeps its frames. The caller releases its reservation.
fn hit(
    context: &mut RequestContext,
    answer: &CachedResponse,
) -> Result<ReadyResponse, ErrorResponse> {
    record(context, "hit");
    let body = match hold(context, answer)?.as_slice() {
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
    Ok(ReadyResponse { response, headers: vec![cache_header("hit")] })
}

/// The frames of a cached response. The cache may evict it while a slow client still reads, so a
/// large one counts as memory in use until its last frame is sent.
fn hold(context: &RequestContext, answer: &CachedResponse) -> Result<Vec<Bytes>, ErrorResponse> {
    let mut frames = answer.frames.clone();
    let size = frames.iter().map(Bytes::len).sum::<usize>();
    if size > UNCOUNTED
        && let Some(last) = frames.pop()
    {
        let held = context.worker.state.memory.hold(size).ok_or_else(no_memory)?;
        frames.push(held.attach(last));
    }
    Ok(frames)
}

async fn fetch(
    context: &mut RequestContext,
    parts: &mut Parts,
    request: &LlmRequest,
    proxy: &Proxy,
    reservation: Option<RequestReservation>,
    lead: Option<Lead>,
) -> Result<ReadyResponse, ErrorResponse> {
    let ttl = context.config.layers.cache.as_ref().map_or(Duration::ZERO, |cache| cache.ttl.0);
    let mut reservation = reservation;
    if let Some(reservation) = &mut reservation {
        reservation.risk();
    }
    let upstream = match send_upstream(context, parts, request, proxy).await {
        Ok(upstream) => upstream,
        Err(error) => {
            if let Some(reservation) = reservation.filter(|_| !error.reached_upstream) {
                reservation.release();
            }
            return Err(error);
        }
    };
    let cache_write = lead.map(|lead| CacheWrite { lead, ttl });
    let completion = Completion { reservation, cache_write };
    response::prepare(context, upstream, request, proxy, completion).await
}
