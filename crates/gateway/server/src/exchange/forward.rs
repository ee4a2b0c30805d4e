//! Forwarding: sends a request to an upstream, with retries, and receives its response.

use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderMap, HeaderName, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::http::response::Parts as ResponseParts;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri, Version};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

use crate::base::clock;
use crate::base::rng::splitmix64;
use crate::exchange::headers::{prepare_request, remove_hop_by_hop};
use crate::exchange::proxy_body::{ProxyBody, Source};
use crate::exchange::request_context::RequestContext;
use crate::http::decode::{DecodeFilter, Decoder};
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::{
    BROKEN_BODY, BodyTooLarge, BodyTooSlow, RequestBody, SLOW_BODY, WaitingForClient, no_memory,
};
use crate::http::whole_body::{self, Bounds, Unread};
use crate::layers::offload;
use crate::upstream::proxy::Proxy;
use crate::upstream::{
    Broken, Endpoint, InFlightGuard, Received, Upstream, UpstreamConn, UpstreamError,
};

/// Longest time for reading a whole response.
const WHOLE_TIMEOUT: Duration = Duration::from_mins(5);

/// The longest pause that a server may request before a retry.
const MOST_PAUSE: Duration = Duration::from_secs(1);

/// Message if no server of the upstream is available.
pub(crate) const NO_SERVER: &str = "no server of the upstream is available now";

/// Message if the upstream exceeds its time limit.
pub(crate) const SLOW_UPSTREAM: &str = "the upstream did not answer in time";

/// Message if no connection to the upstream can be opened.
pub(crate) const NO_UPSTREAM: &str = "the upstream cannot be reached";

/// The result of one attempt.
type Sent = Result<Result<Received, UpstreamError>, Elapsed>;

/// An upstream's response whose body is still on the connection.
pub(crate) struct UpstreamResponse {
    pub(crate) response: Response<Incoming>,
    /// Decodes the body, whose encoding was removed from the headers.
    decoder: Option<Decoder>,
    connection: UpstreamConn,
    in_flight: InFlightGuard,
}

/// Sends a request to an upstream, with retries where allowed. Takes the URI and the headers out of
/// `parts`.
pub(crate) async fn send(
    context: &RequestContext,
    proxy: &Proxy,
    parts: &mut Parts,
    body: RequestBody,
) -> Result<Box<UpstreamResponse>, ErrorResponse> {
    let (worker, upstream) = (&context.worker, &proxy.upstream);
    worker.fair_queue.step().await;
    inject_faults(context)?;
    prepare_request(&mut parts.headers, &context.config, upstream)?;
    parts.uri = upstream_uri(&parts.uri, proxy.strip.as_deref())?;
    parts.version = Version::HTTP_11;
    let mut attempts = Attempts::new(upstream, proxy.timeout.0, parts);
    let mut body = body;
    loop {
        let in_flight = attempts.choose()?;
        let spare = if attempts.has_more() { body.try_clone() } else { None };
        let request = build_request(parts, &in_flight.endpoint, body, spare.is_some());
        context.note_upstream_asked();
        let waiting = request.body().waiting();
        let sent = {
            let is_first = attempts.made == 1;
            // Pinned here, because a time limit that took it by value would move it.
            let sending = pin!(worker.pool.send(&in_flight.endpoint, request, is_first));
            timeout(attempts.limit, sending).await
        };
        // The server may have closed the connection while it was idle.
        let is_stale = attempts.is_idempotent
            && matches!(&sent, Ok(Err(UpstreamError::Broken(Broken { reused: true, .. }))));
        let result = outcome(sent, in_flight, &waiting);
        context.note_upstream_read();
        let Some(spare) = spare else { return result };
        if !(is_stale || attempts.may_retry(&result).await) {
            return result;
        }
        worker.metrics().retries.inc();
        body = spare;
    }
}

/// Injects the faults that occur before the upstream sees the request.
fn inject_faults(context: &RequestContext) -> Result<(), ErrorResponse> {
    let (injector, faults) = (&context.worker.faults, &context.config.spec.faults);
    if injector.should_inject(faults, faults.error_share) {
        return Err(ErrorResponse::injected_fault("an injected fault"));
    }
    Ok(())
}

/// Whether a status is a failure of the server. An unknown method or version is not its fault.
pub(crate) fn is_failure(status: StatusCode) -> bool {
    let clients_fault = [StatusCode::NOT_IMPLEMENTED, StatusCode::HTTP_VERSION_NOT_SUPPORTED];
    status.is_server_error() && !clients_fault.contains(&status)
}

/// The pause that a server requests before a retry (RFC 9110, 10.2.3): in seconds or as a time;
/// some servers send milliseconds.
fn wanted_pause(headers: &HeaderMap) -> Option<Duration> {
    if let Some(millis) = text_of(headers, "retry-after-ms").and_then(finite) {
        return Duration::try_from_secs_f64(millis / 1e3).ok();
    }
    let text = text_of(headers, RETRY_AFTER.as_str())?;
    if let Some(seconds) = finite(text) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let due = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(due.saturating_sub(Duration::from_millis(clock::unix_ms())))
}

/// The attempts at one request.
struct Attempts<'a> {
    upstream: &'a Upstream,
    /// Time limit of one attempt.
    limit: Duration,
    /// Most attempts: the configured number, or one more over a new connection.
    most: u32,
    made: u32,
    /// Whether a request that the server may have acted on may be sent again (RFC 9110, 9.2.2).
    is_idempotent: bool,
    last: Option<Arc<Endpoint>>,
}

impl<'a> Attempts<'a> {
    fn new(upstream: &'a Upstream, limit: Duration, parts: &Parts) -> Self {
        if upstream.retry.is_some() {
            upstream.retry_budget.count_request(clock::now());
        }
        let key = const { HeaderName::from_static("idempotency-key") };
        let is_idempotent = parts.method.is_idempotent() || parts.headers.contains_key(key);
        let unset = 1 + u32::from(is_idempotent);
        let most = upstream.retry.map_or(unset, |retry| retry.attempts);
        Self { upstream, limit, most, made: 0, is_idempotent, last: None }
    }

    fn choose(&mut self) -> Result<InFlightGuard, ErrorResponse> {
        let chosen = self.upstream.choose(self.last.as_ref());
        let chosen = chosen.ok_or_else(|| ErrorResponse::upstream_unavailable(NO_SERVER))?;
        self.made += 1;
        self.last = Some(Arc::clone(&chosen.endpoint));
        Ok(chosen)
    }

    const fn has_more(&self) -> bool {
        self.made < self.most
    }

    /// Whether a retry is allowed and may succeed. Returns after the pause: at least as long as the
    /// server requests, with up to 50 % jitter, so that retries do not arrive all at once.
    async fn may_retry(&self, result: &Result<Box<UpstreamResponse>, ErrorResponse>) -> bool {
        let Some(retry) = self.upstream.retry.filter(|_| self.may_succeed(result)) else {
            return false;
        };
        let wanted = result.as_ref().ok().and_then(|sent| wanted_pause(sent.response.headers()));
        let wanted = wanted.unwrap_or_default();
        // The client gets the pause in the answer and may retry itself.
        if wanted > MOST_PAUSE || !self.upstream.retry_budget.try_retry() {
            return false;
        }
        let base = retry.backoff.0.saturating_mul(1 << self.made.saturating_sub(1).min(10));
        let jitter = (splitmix64(clock::now()) % 512) as f64 / 1_024.0;
        sleep(base.max(wanted).mul_f64(1.0 + jitter)).await;
        true
    }

    /// Whether another attempt may succeed, and cannot repeat an effect: a server that answers has
    /// read the request.
    fn may_succeed(&self, result: &Result<Box<UpstreamResponse>, ErrorResponse>) -> bool {
        let (status, is_read) = match result {
            Ok(upstream) => (upstream.response.status(), true),
            Err(error) => (error.status, error.reached_upstream),
        };
        matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)
            && (self.is_idempotent || !is_read)
    }
}

/// The outcome of an attempt, recorded for its server.
fn outcome(
    sent: Sent,
    in_flight: InFlightGuard,
    waiting: &WaitingForClient,
) -> Result<Box<UpstreamResponse>, ErrorResponse> {
    let success = matches!(&sent, Ok(Ok((response, _))) if !is_failure(response.status()));
    // Aborted, oversized or slow bodies of the client do not count as failures of the server, and
    // neither does a connection that it may have closed while idle.
    let is_inconclusive = match &sent {
        Ok(Err(UpstreamError::Broken(broken))) => broken.reused || broken.error.is_user(),
        Err(_) => waiting.is_set(),
        Ok(_) => false,
    };
    if !is_inconclusive {
        in_flight.record(success);
    }
    match sent {
        Ok(Ok((response, _))) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            // Bytes after it have an unknown protocol, because the request asked for no upgrade.
            let message = "the upstream switched protocols without being asked (status 101)";
            Err(ErrorResponse::bad_gateway(message).after_upstream())
        }
        Ok(Ok((response, connection))) => {
            Ok(Box::new(UpstreamResponse { response, decoder: None, connection, in_flight }))
        }
        Ok(Err(UpstreamError::Connect)) => Err(ErrorResponse::bad_gateway(NO_UPSTREAM)),
        Ok(Err(UpstreamError::Broken(Broken { unsent: Some(_), error, .. }))) => {
            Err(broken(&error))
        }
        Ok(Err(UpstreamError::Broken(Broken { error, .. }))) => {
            Err(broken(&error).after_upstream())
        }
        Err(_) if is_inconclusive => Err(ErrorResponse::request_timeout(SLOW_BODY)),
        Err(_) => Err(ErrorResponse::upstream_timeout(SLOW_UPSTREAM).after_upstream()),
    }
}

/// The error for a broken upstream connection. A client's body that is too large or malformed
/// breaks it, too.
fn broken(error: &hyper::Error) -> ErrorResponse {
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        if found.is::<BodyTooLarge>() {
            return ErrorResponse::request_too_large(BodyTooLarge.to_string());
        }
        if found.is::<BodyTooSlow>() {
            return ErrorResponse::request_timeout(SLOW_BODY);
        }
        if error.is_user() {
            return ErrorResponse::bad_request(BROKEN_BODY);
        }
        cause = found.source();
    }
    ErrorResponse::bad_gateway("the upstream broke off")
}

/// The request for a server; the head is copied only if a retry may need it.
fn build_request(
    parts: &mut Parts,
    endpoint: &Endpoint,
    body: RequestBody,
    keep_head: bool,
) -> Box<Request<RequestBody>> {
    let mut request = Box::new(Request::new(body));
    *request.method_mut() = parts.method.clone();
    if keep_head {
        *request.uri_mut() = parts.uri.clone();
        *request.headers_mut() = parts.headers.clone();
    } else {
        *request.uri_mut() = mem::take(&mut parts.uri);
        *request.headers_mut() = mem::take(&mut parts.headers);
    }
    request.headers_mut().insert(HOST, endpoint.host.clone());
    request
}

/// Path and query for the upstream, without the prefix to strip.
pub(crate) fn upstream_uri(uri: &Uri, strip: Option<&str>) -> Result<Uri, ErrorResponse> {
    let whole = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let Some(rest) = strip.and_then(|prefix| whole.strip_prefix(prefix)) else {
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        return Ok(Uri::from(path));
    };
    let slash = if rest.starts_with('/') { "" } else { "/" };
    Uri::try_from(format!("{slash}{rest}"))
        .map_err(|_| ErrorResponse::bad_request("the path is malformed"))
}

impl UpstreamResponse {
    /// Decodes the body from here on, if its encoding is supported.
    pub(crate) fn decode(&mut self) {
        if self.decoder.is_none() && !self.response.body().is_end_stream() {
            self.decoder = Decoder::take_from(self.response.headers_mut());
        }
    }

    /// Reads and decodes the whole response, bounded in size and time.
    pub(crate) async fn collect(
        mut self: Box<Self>,
        context: &RequestContext,
    ) -> Result<(ResponseParts, Bytes), ErrorResponse> {
        self.decode();
        let Self { response, decoder, connection, in_flight } = *self;
        let (mut parts, incoming) = response.into_parts();
        let limit = usize::try_from(context.config.server.response_bytes.0).unwrap_or(usize::MAX);
        let bounds = Bounds { bytes: limit, time: WHOLE_TIMEOUT };
        let body = whole_body::read(incoming, bounds, &context.worker.state.memory).await;
        context.note_upstream_read();
        let body = body.map_err(|unread| match unread {
            Unread::TooSlow => {
                ErrorResponse::upstream_timeout("the upstream's response did not end in time")
            }
            Unread::NoMemory => no_memory(),
            Unread::TooLarge | Unread::Broken => {
                ErrorResponse::bad_gateway("the upstream's response broke off or is too large")
            }
        })?;
        context.worker.pool.release(&in_flight.endpoint, connection);
        remove_hop_by_hop(&mut parts.headers);
        parts.version = Version::HTTP_11;
        let body = match decoder {
            Some(decoder) => decode_whole(context, decoder, body, limit).await?,
            None => body,
        };
        Ok((parts, body))
    }

    /// Head and body for the client, without hop-by-hop headers.
    pub(crate) fn into_proxy_body(
        self: Box<Self>,
        context: &RequestContext,
        upstream: &Upstream,
    ) -> (ResponseParts, ProxyBody) {
        let Self { response, decoder, connection, in_flight } = *self;
        let (mut parts, incoming) = response.into_parts();
        remove_hop_by_hop(&mut parts.headers);
        parts.version = Version::HTTP_11;
        let worker = &context.worker;
        let idle_limit = upstream.idle_timeout.0;
        let source =
            Source { incoming, connection: Some((Rc::clone(&worker.pool), connection)), in_flight };
        let mut body = ProxyBody::new(source, worker, idle_limit);
        if let Some(decoder) = decoder {
            body.add_filter(Box::new(DecodeFilter(decoder)));
        }
        (parts, body)
    }
}

/// Decodes a whole body, with the same size limit as an unencoded one.
async fn decode_whole(
    context: &RequestContext,
    mut decoder: Decoder,
    body: Bytes,
    limit: usize,
) -> Result<Bytes, ErrorResponse> {
    let size = body.len();
    let decoded = offload::run(size, move || decoder.decode(&body, limit)).await?;
    let decoded = decoded.map_err(|error| ErrorResponse::bad_gateway(error.to_string()))?;
    context.made(decoded)
}

fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn pause(name: &'static str, value: &str) -> Option<Duration> {
        wanted_pause(&HeaderMap::from_iter([(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )]))
    }

    #[test]
    fn a_pause_is_read_in_each_of_its_forms() {
        for (name, value, expected) in [
            ("retry-after", "7", Some(7.0)),
            ("retry-after", " 0.5 ", Some(0.5)),
            ("retry-after", "0", Some(0.0)),
            ("retry-after-ms", "1500", Some(1.5)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "1e400", None),
            ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", Some(0.0)),
        ] {
            assert_eq!(pause(name, value).map(|pause| pause.as_secs_f64()), expected, "{value}");
        }
        let far = pause("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT").unwrap();
        assert!(far > MOST_PAUSE);
    }
}
