//! Requests that an upstream answers.

use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use tokio::time::{sleep, timeout};

use super::{Call, refuse, upgrade};
use crate::body::{Body, Upload};
use crate::clock;
use crate::config::Config;
use crate::exchange::Exchange;
use crate::fault::scramble;
use crate::refusal::{Refusal, Voice};
use crate::relay::Relay;
use crate::router::Proxy;
use crate::spec::DialectSpec;
use crate::upstream::{Active, Endpoint, Fault, Link, Upstream};
use crate::worker::Worker;

const SLOW_BODY: &str = "the body did not arrive in time";

/// Bodies up to this size are read before they are sent on, and so can be sent again.
const SMALL: u64 = 64 << 10;

/// The largest answer that is read as a whole, and the longest time that this may take.
const WHOLE: usize = 64 << 20;
const WHOLE_TIME: Duration = Duration::from_mins(5);

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

pub(super) async fn serve(mut call: Call, proxy: &Proxy, voice: Voice) -> Response<Body> {
    if proxy.websocket && upgrade::is_asked_for(call.request.headers()) {
        return match Box::pin(upgrade::serve(&mut call, proxy)).await {
            Ok(response) => {
                super::close(&mut call.exchange, &response);
                response
            }
            Err(refusal) => refuse(call.exchange, refusal, voice),
        };
    }
    let Call { request, exchange, .. } = call;
    let (parts, body) = request.into_parts();
    let sent = match upload(&exchange.config, body).await {
        Ok(upload) => send(&exchange, proxy, parts, upload).await,
        Err(refusal) => Err(refusal),
    };
    match sent {
        Ok(reply) => relay(exchange, reply, &proxy.upstream),
        Err(refusal) => refuse(exchange, refusal, voice),
    }
}

/// An upstream's answer, its body not read yet.
pub(crate) struct Reply {
    pub(crate) response: Response<Incoming>,
    link: Link,
    active: Active,
}

/// The body of a request, small ones in memory.
async fn upload(config: &Config, body: Incoming) -> Result<Upload, Refusal> {
    let size = body.size_hint();
    if body.is_end_stream() {
        return Ok(Upload::Full(Bytes::new()));
    }
    if size.upper().is_none_or(|upper| upper > SMALL) {
        let server = &config.server;
        return Ok(Upload::stream(body, server.body_bytes.0, server.body_timeout.0));
    }
    collect(config, body).await.map(Upload::Full)
}

/// A whole body, bounded in size and time.
pub(crate) async fn collect(config: &Config, body: Incoming) -> Result<Bytes, Refusal> {
    let most = usize::try_from(config.server.body_bytes.0).unwrap_or(usize::MAX);
    let whole = timeout(config.server.body_timeout.0, Limited::new(body, most).collect()).await;
    let whole = whole.map_err(|_| Refusal::too_slow(SLOW_BODY))?;
    whole.map(Collected::to_bytes).map_err(|error| {
        if error.is::<LengthLimitError>() {
            Refusal::too_large(format!("the body is larger than {most} bytes"))
        } else {
            Refusal::bad_request("the body is malformed or broke off")
        }
    })
}

/// Sends a request to an upstream, again where that is allowed.
pub(crate) async fn send(
    exchange: &Exchange,
    proxy: &Proxy,
    mut parts: Parts,
    upload: Upload,
) -> Result<Reply, Refusal> {
    let (worker, upstream) = (&exchange.worker, &proxy.upstream);
    plan_faults(worker, exchange)?;
    clean(&mut parts.headers, &exchange.config, upstream)?;
    parts.uri = target(&parts.uri, proxy.strip.as_deref())?;
    parts.version = Version::HTTP_11;
    let mut attempts = Attempts::new(upstream, proxy.timeout.0);
    let mut upload = Some(upload);
    loop {
        let endpoint = attempts.choose()?;
        let (body, spare) = match upload.take() {
            Some(body) => {
                let spare = if attempts.may_repeat() { body.again() } else { None };
                (body, spare)
            }
            None => return Err(Refusal::bad_gateway("the upstream broke off")),
        };
        let request = outgoing(&mut parts, &endpoint, body, spare.is_some());
        let outcome = attempts.attempt(worker, &endpoint, request).await;
        let retry = spare.is_some() && outcome.is_retriable() && upstream.retries.spend();
        if !retry {
            return outcome.conclude();
        }
        worker.shared().meters.retried();
        upload = spare;
        attempts.pause().await;
    }
}

/// Faults that strike before the upstream sees the request.
fn plan_faults(worker: &Worker, exchange: &Exchange) -> Result<(), Refusal> {
    let faults = &exchange.config.faults;
    worker.faults.leak(faults);
    if worker.faults.hits(faults, faults.error_share) {
        return Err(Refusal::planted("a planted fault"));
    }
    Ok(())
}

/// The attempts at one request.
struct Attempts<'a> {
    upstream: &'a Upstream,
    limit: Duration,
    made: u32,
    last: Option<Arc<Endpoint>>,
}

/// What came of an attempt.
enum Outcome {
    Answer(Reply),
    Refused(Refusal),
}

impl Outcome {
    /// Could it be otherwise next time?
    fn is_retriable(&self) -> bool {
        let status = match self {
            Self::Answer(reply) => reply.response.status(),
            Self::Refused(refusal) => refusal.status,
        };
        matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)
    }

    fn conclude(self) -> Result<Reply, Refusal> {
        match self {
            Self::Answer(reply) => Ok(reply),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

impl<'a> Attempts<'a> {
    fn new(upstream: &'a Upstream, limit: Duration) -> Self {
        if upstream.retry.is_some() {
            upstream.retries.count(clock::now());
        }
        Self { upstream, limit, made: 0, last: None }
    }

    fn choose(&mut self) -> Result<Arc<Endpoint>, Refusal> {
        let chosen = self.upstream.choose(self.last.as_ref(), clock::now());
        let chosen = chosen.ok_or_else(|| {
            Refusal::unavailable("no server of the upstream is fit for requests now")
        })?;
        self.made += 1;
        self.last = Some(Arc::clone(chosen));
        Ok(Arc::clone(chosen))
    }

    fn may_repeat(&self) -> bool {
        self.upstream.retry.is_some_and(|retry| self.made < retry.attempts)
    }

    async fn attempt(
        &self,
        worker: &Worker,
        endpoint: &Arc<Endpoint>,
        request: Request<Upload>,
    ) -> Outcome {
        let active = Active::at(endpoint);
        let waiting = request.body().waiting();
        let sent = timeout(self.limit, worker.pool().send(endpoint, request)).await;
        let good = matches!(&sent, Ok(Ok((response, _))) if !response.status().is_server_error());
        // A body that the client broke off, made too large or is slow with says nothing about the server.
        let clients = match &sent {
            Ok(Err(Fault::Broken(_, error))) => error.is_user(),
            Err(_) => waiting.is_on(),
            Ok(_) => false,
        };
        if !clients {
            endpoint.learn(good, clock::now());
        }
        match sent {
            Ok(Ok((response, link))) => Outcome::Answer(Reply { response, link, active }),
            Ok(Err(Fault::Connect)) => {
                Outcome::Refused(Refusal::bad_gateway("the upstream cannot be reached"))
            }
            Ok(Err(Fault::Broken(_, error))) => Outcome::Refused(broken(&error)),
            Err(_) if clients => Outcome::Refused(Refusal::too_slow(SLOW_BODY)),
            Err(_) => {
                Outcome::Refused(Refusal::upstream_slow("the upstream did not answer in time"))
            }
        }
    }

    /// The pause before the next attempt, up to a half longer so that many do not come at once.
    async fn pause(&self) {
        let Some(retry) = self.upstream.retry else { return };
        let base = retry.backoff.0.saturating_mul(1 << self.made.saturating_sub(1).min(10));
        let jitter = (scramble(clock::now()) % 512) as f64 / 1_024.0;
        sleep(base.mul_f64(1.0 + jitter)).await;
    }
}

/// A body of the client's that was too large or malformed breaks the connection to the upstream, too.
fn broken(error: &hyper::Error) -> Refusal {
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        if found.is::<crate::body::TooLarge>() {
            return Refusal::too_large("the body is larger than allowed");
        }
        if found.is::<crate::body::TooSlow>() {
            return Refusal::too_slow(SLOW_BODY);
        }
        if error.is_user() {
            return Refusal::bad_request("the body is malformed or broke off");
        }
        cause = found.source();
    }
    Refusal::bad_gateway("the upstream broke off")
}

/// The request for an upstream; the head is copied only if it may be needed again.
fn outgoing(parts: &mut Parts, endpoint: &Endpoint, body: Upload, again: bool) -> Request<Upload> {
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    if again {
        *request.uri_mut() = parts.uri.clone();
        *request.headers_mut() = parts.headers.clone();
    } else {
        *request.uri_mut() = mem::take(&mut parts.uri);
        *request.headers_mut() = mem::take(&mut parts.headers);
    }
    request.headers_mut().insert(HOST, endpoint.host.clone());
    request
}

/// Takes off what concerns only this hop (RFC 9110, 7.6.1), and the client's key where the gateway has one
/// of its own.
pub(super) fn clean(
    headers: &mut HeaderMap,
    config: &Config,
    upstream: &Upstream,
) -> Result<(), Refusal> {
    strip_hop(headers);
    headers.remove(CONTENT_LENGTH);
    if let Some(auth) = &config.auth {
        headers.remove(auth.header());
    }
    if let Some(key) = &upstream.key {
        credential(headers, upstream.dialect, key)
            .ok_or_else(|| Refusal::bad_gateway("the upstream's key is no header value"))?;
    }
    Ok(())
}

fn credential(headers: &mut HeaderMap, dialect: DialectSpec, key: &str) -> Option<()> {
    let (name, mut value) = match dialect {
        DialectSpec::Openai => {
            (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}")).ok()?)
        }
        DialectSpec::Anthropic => {
            (HeaderName::from_static("x-api-key"), HeaderValue::try_from(key).ok()?)
        }
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

/// Takes off the headers of one hop, and those that `connection` names.
pub(super) fn strip_hop(headers: &mut HeaderMap) {
    let named: Vec<_> = headers.get_all(CONNECTION).iter().cloned().collect();
    for name in named.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')) {
        if let Ok(name) = HeaderName::from_bytes(name.trim_ascii()) {
            headers.remove(name);
        }
    }
    headers.remove(CONNECTION);
    for name in [&KEEP_ALIVE, &PROXY_CONNECTION, &TE, &TRAILER, &TRANSFER_ENCODING, &UPGRADE] {
        headers.remove(name);
    }
}

/// Path and query for the upstream.
pub(super) fn target(uri: &Uri, strip: Option<&str>) -> Result<Uri, Refusal> {
    let whole = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let Some(rest) = strip.and_then(|prefix| whole.strip_prefix(prefix)) else {
        let target =
            uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        return Ok(Uri::from(target));
    };
    let slash = if rest.starts_with('/') { "" } else { "/" };
    Uri::try_from(format!("{slash}{rest}"))
        .map_err(|_| Refusal::bad_request("the path is malformed"))
}

/// The answer for the client, its body still with the upstream.
fn relay(mut exchange: Exchange, reply: Reply, upstream: &Upstream) -> Response<Body> {
    let (mut parts, mut relay) = reply.into_relay(&exchange, upstream);
    if let Some(policy) = &exchange.config.scrub {
        crate::scrub::attach(policy, &parts.headers, &mut relay);
    }
    if relay.is_changed() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    exchange.status = parts.status;
    relay.account_to(exchange);
    Response::from_parts(parts, Body::Relay(Box::new(relay)))
}

impl Reply {
    /// The whole answer, bounded in size and time.
    pub(crate) async fn collect(
        self,
        exchange: &Exchange,
    ) -> Result<(hyper::http::response::Parts, Bytes), Refusal> {
        let Self { response, link, active } = self;
        let (mut parts, incoming) = response.into_parts();
        let whole = timeout(WHOLE_TIME, Limited::new(incoming, WHOLE).collect()).await;
        let whole = whole
            .map_err(|_| Refusal::upstream_slow("the upstream's answer did not end in time"))?;
        let whole = whole
            .map_err(|_| Refusal::bad_gateway("the upstream's answer broke off or is too large"))?;
        exchange.worker.pool().put(active.endpoint(), link);
        strip_hop(&mut parts.headers);
        parts.version = Version::HTTP_11;
        Ok((parts, whole.to_bytes()))
    }

    /// Head and body of the answer, what concerns only the upstream's hop taken off.
    pub(crate) fn into_relay(
        self,
        exchange: &Exchange,
        upstream: &Upstream,
    ) -> (hyper::http::response::Parts, Relay) {
        let (mut parts, incoming) = self.response.into_parts();
        strip_hop(&mut parts.headers);
        parts.version = Version::HTTP_11;
        let link = (Rc::clone(&exchange.worker), self.link);
        let mut relay = Relay::new(incoming, link, self.active, upstream.idle_timeout.0);
        let faults = &exchange.config.faults;
        relay.plant(exchange.worker.faults.of_answer(faults, is_stream(&parts.headers)));
        (parts, relay)
    }
}

/// Is an answer a stream of events?
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
