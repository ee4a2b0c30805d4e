//! The upstream's response on its way to the client: metered, translated, scrubbed, cached.

use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::http::response::Parts;
use hyper::{HeaderMap, StatusCode};
use plimsoll_gateway_dialect::{
    DialectError, StreamSettings, StreamTranslator, Streaming, Usage, estimated_tokens, is_answer,
};

use super::ReadyResponse;
use super::UsageFilter;
use super::cache_key::lifetime;
use super::cache_write::{CacheFilter, CacheWrite};
use super::request::{LlmRequest, dialect_error};
use crate::base::clock;
use crate::exchange::document;
use crate::exchange::forward::UpstreamResponse;
use crate::exchange::proxy_body::ProxyBody;
use crate::exchange::request_context::RequestContext;
use crate::exchange::response_body::ResponseBody;
use crate::http::body_filter::{BodyFilter, BoxError, LastWords};
use crate::http::content::{MediaType, is_encoded, is_event_stream};
use crate::http::error_response::ErrorResponse;
use crate::layers::ObservedUsage;
use crate::layers::Reading;
use crate::layers::budget::RequestReservation;
use crate::upstream::proxy::Proxy;

/// The remaining work at the end of the response.
pub(super) struct Completion {
    pub(super) reservation: Option<RequestReservation>,
    pub(super) cache_write: Option<CacheWrite>,
}

impl Completion {
    /// Limits caching to the response's headers.
    fn keep_as_told(&mut self, headers: &HeaderMap) {
        let Some(write) = &mut self.cache_write else { return };
        match lifetime(headers, write.ttl) {
            Some(lifetime) => write.ttl = lifetime,
            None => self.keep_nothing(),
        }
    }

    /// Prevents caching.
    fn keep_nothing(&mut self) {
        if let Some(write) = self.cache_write.take() {
            write.cancel();
        }
    }
}

/// Prepares the upstream's response for the client.
pub(super) async fn prepare(
    context: &mut RequestContext,
    mut upstream: Box<UpstreamResponse>,
    request: &LlmRequest,
    proxy: &Proxy,
    mut completion: Completion,
) -> Result<ReadyResponse, ErrorResponse> {
    if request.is_answer_read(&context.config) {
        upstream.decode();
    }
    let usage = Rc::new(ObservedUsage::default());
    context.usage = Some(Rc::clone(&usage));
    let status = upstream.response.status();
    if !status.is_success() {
        completion.keep_nothing();
        if let Some(reservation) = completion.reservation {
            reservation.release();
        }
        return prepare_error(context, upstream, request).await;
    }
    let headers = upstream.response.headers();
    let is_stream = is_event_stream(headers);
    if completion.cache_write.is_some()
        && (status != StatusCode::OK || !is_expected(request, headers))
    {
        completion.keep_nothing();
    }
    completion.keep_as_told(headers);
    // With an encoding that we cannot decode.
    let compressed = is_encoded(headers);
    if compressed && request.translator.is_some() {
        return Err(unknown_encoding(headers));
    }
    context.config.layers.reading(headers, Reading::Json)?;
    let changed = request.translator.is_some() || context.config.layers.change_answers();
    if !is_stream && changed && !compressed {
        return prepare_whole(context, upstream, request, completion, &usage).await;
    }
    let Completion { reservation, cache_write } = completion;
    let (mut parts, mut body) = upstream.into_proxy_body(context, &proxy.upstream);
    // Otherwise the usage and completeness of the response are not needed.
    let is_observed =
        reservation.is_some() || cache_write.is_some() || context.config.observes_requests;
    // The usage of an undecodable body is unknown; dropping the reservation charges it in full.
    if is_observed && !compressed {
        let endpoint = request.upstream_endpoint();
        body.add_filter(Box::new(UsageFilter::new(endpoint, is_stream, reservation, &usage)));
    }
    if is_stream && !compressed {
        body.tell_why(request.endpoint);
        add_stream_filters(context, request, &mut body);
    }
    match cache_write {
        // The encoding is not cached, so a cached body would be unreadable.
        Some(write) if compressed => write.cancel(),
        Some(write) => {
            let content_type = parts.headers.get(CONTENT_TYPE).cloned();
            body.add_filter(Box::new(CacheFilter::new(write, content_type, usage)));
        }
        None => {}
    }
    if body.changes_length() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    Ok(ReadyResponse::new(parts, ResponseBody::Proxy(Box::new(body))))
}

/// Whether a response has the requested type: events, or JSON.
fn is_expected(request: &LlmRequest, headers: &HeaderMap) -> bool {
    match request.streaming {
        Streaming::No => MediaType::read(headers).is_some_and(|kind| kind.is_plain_json()),
        Streaming::Yes | Streaming::WithUsage => is_event_stream(headers),
    }
}

/// The error for an answer that must be translated but cannot be decoded.
fn unknown_encoding(headers: &HeaderMap) -> ErrorResponse {
    let coding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes).unwrap_or_default();
    let coding: String = String::from_utf8_lossy(coding).chars().take(40).collect();
    ErrorResponse::bad_gateway(format!(
        "the upstream's response has the unsupported `content-encoding: {coding}`; gzip, deflate, br and zstd are supported"
    ))
}

/// Adds the filters that change a stream.
fn add_stream_filters(context: &RequestContext, request: &LlmRequest, body: &mut ProxyBody) {
    if let Some(translator) = request.translator {
        let settings = StreamSettings {
            created: clock::unix_ms() / 1_000,
            include_usage: request.streaming == Streaming::WithUsage,
            prompt_tokens: request.prompt_tokens,
        };
        body.add_filter(Box::new(TranslateStream(translator.stream(settings))));
    }
    for filter in context.config.layers.filters(Reading::Events) {
        body.add_filter(filter);
    }
}

/// Translates a stream to the caller's dialect.
struct TranslateStream(StreamTranslator);

impl BodyFilter for TranslateStream {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        let mut out = Vec::with_capacity(chunk.len());
        match self.0.feed(&chunk, &mut out) {
            Ok(()) => Ok(Bytes::from(out)),
            Err(error) => Err(self.last_words(error, out)),
        }
    }

    /// If a stream ended before its last event, the client's stream is aborted, too.
    fn end(&mut self) -> Result<Bytes, BoxError> {
        let mut out = Vec::new();
        match self.0.finish(&mut out) {
            Ok(()) => Ok(Bytes::from(out)),
            Err(error) => Err(self.last_words(error, out)),
        }
    }

    fn buffered_bytes(&self) -> usize {
        self.0.buffered()
    }
}

impl TranslateStream {
    /// Sends the translated part, and an event that reports why the stream ends.
    fn last_words(&self, error: DialectError, mut out: Vec<u8>) -> BoxError {
        self.0.write_error(&error, &mut out);
        LastWords { bytes: Bytes::from(out), source: error.into() }.into()
    }
}

/// An upstream's error, in the caller's error format.
async fn prepare_error(
    context: &RequestContext,
    upstream: Box<UpstreamResponse>,
    request: &LlmRequest,
) -> Result<ReadyResponse, ErrorResponse> {
    let (mut parts, mut body) = upstream.collect(context).await?;
    if let Some(translator) = request.translator {
        let (status, translated) = translator.error(parts.status.as_u16(), &body);
        parts.status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        set_json_headers(&mut parts);
        body = context.made(translated)?;
    }
    body = scrub(context, &mut parts, body).await?;
    Ok(ReadyResponse::new(parts, ResponseBody::Full(body)))
}

/// Scrubs a whole response.
async fn scrub(
    context: &RequestContext,
    parts: &mut Parts,
    body: Bytes,
) -> Result<Bytes, ErrorResponse> {
    let scrubbed = document::scrub_response(context, &parts.headers, body).await?;
    if context.config.layers.change_answers() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    Ok(scrubbed)
}

/// Replaces the headers that describe the body.
fn set_json_headers(parts: &mut Parts) {
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

/// Reads and changes a whole response.
async fn prepare_whole(
    context: &RequestContext,
    upstream: Box<UpstreamResponse>,
    request: &LlmRequest,
    completion: Completion,
    observed: &ObservedUsage,
) -> Result<ReadyResponse, ErrorResponse> {
    let (mut parts, mut body) = upstream.collect(context).await?;
    let wanted = completion.reservation.is_some() || context.config.observes_requests;
    let usage = wanted.then(|| Usage::from_body(request.upstream_endpoint(), &body).ok()).flatten();
    let usage = usage.flatten();
    observed.usage.set(usage);
    let judged = completion.cache_write.is_some() || usage.is_none();
    let good = judged && is_answer(request.upstream_endpoint(), &body);
    // Otherwise the usage is unknown, and the reservation is charged in full.
    if let Some(reservation) = completion.reservation
        && (usage.is_some() || good)
    {
        reservation.settle(usage, estimated_tokens(usage, &body)).await;
    }
    if let Some(translator) = request.translator {
        let translated = translator.response(&body, clock::unix_ms() / 1_000);
        body = context.made(translated.map_err(|error| dialect_error(&error))?)?;
    }
    if request.translator.is_some() || !parts.headers.contains_key(CONTENT_TYPE) {
        set_json_headers(&mut parts);
    }
    body = scrub(context, &mut parts, body).await?;
    match completion.cache_write {
        Some(write) if good => write.write_whole(parts.headers.get(CONTENT_TYPE), &body),
        Some(write) => write.cancel(),
        None => {}
    }
    Ok(ReadyResponse::new(parts, ResponseBody::Full(body)))
}
