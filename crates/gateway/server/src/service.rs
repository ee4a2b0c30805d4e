//! The way of a request: found, let in, carried out, answered.

pub(crate) mod forward;
mod own;
mod upgrade;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use crate::body::Body;
use crate::config::Config;
use crate::exchange::Exchange;
use crate::fault;
use crate::framing::{Doubt, wanders};
use crate::refusal::{Refusal, Voice};
use crate::router::{Handler, Route};
use crate::worker::Worker;

/// What came of a request: an answer, or the reason why there is none.
pub(crate) type Answer = Result<Response<Body>, Refusal>;

/// A request on its way through the layers.
pub(crate) struct Call {
    pub(crate) request: Request<Incoming>,
    pub(crate) exchange: Exchange,
    /// The last parameter of the path.
    pub(crate) parameter: Option<String>,
}

/// Answers a request, whatever happens.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    request: Request<Incoming>,
    client: SocketAddr,
    doubt: &Doubt,
) -> Response<Body> {
    let config = worker.config();
    worker.shared().meters.serve();
    let found = config.router.find(request.uri().path());
    let (route, parameter) = found.unwrap_or((&config.stray, None));
    let bare = !config.records
        && route.open
        && config.request_id.is_none()
        && config.faults.delay.nanos() == 0;
    if bare && let Some(answer) = quick(route, request.method()) {
        return answer;
    }
    let exchange = Exchange::begin(&worker, &config, route, (request.method(), client));
    let voice = voice(&config, route, request.uri().path());
    let mut call = Call { request, exchange, parameter };
    call.note();
    match admit(&mut call, doubt).await {
        Ok(headers) => finish(carry_out(call, voice).await, headers),
        Err(refusal) => refuse(call.exchange, refusal, voice),
    }
}

/// The answers that cost nothing, where no layer has a say in them.
fn quick(route: &Route, method: &Method) -> Option<Response<Body>> {
    match &route.handler {
        Handler::Live if matches!(*method, Method::GET | Method::HEAD) => Some(own::live()),
        Handler::Fixed(fixed) => Some(own::fixed(fixed)),
        _ => None,
    }
}

fn voice(config: &Config, route: &Route, path: &str) -> Voice {
    match &route.handler {
        Handler::Proxy(proxy) if proxy.llm => Voice::Llm(crate::llm::dialect_of(path, proxy)),
        _ => config.voice,
    }
}

/// A header for the answer.
type Extra = (HeaderName, HeaderValue);

/// Is the request let in? Headers for the answer come back.
async fn admit(call: &mut Call, doubt: &Doubt) -> Result<Vec<Extra>, Refusal> {
    let config = Arc::clone(&call.exchange.config);
    let mut extra = Vec::new();
    if let Some(header) = &config.request_id {
        extra.push((header.clone(), call.identify(header)));
    }
    check_framing(&call.request, config.server.body_bytes.0, doubt)?;
    let route = Arc::clone(&call.exchange.route);
    if route.open {
        return Ok(extra);
    }
    if let Some(auth) = &config.auth {
        let consumer = auth.consumer(call.request.headers())?;
        call.exchange.consumer = Some(Arc::clone(consumer));
        restrict(call, &route)?;
    }
    if let Some(tenant) = &config.tenant {
        let consumer = call.exchange.consumer.as_deref();
        call.exchange.tenant = tenant.tenant(call.request.headers(), consumer)?;
    }
    crate::limits::admit(&call.exchange, &mut extra).await?;
    Ok(extra)
}

/// May this consumer use the route?
fn restrict(call: &Call, route: &Route) -> Result<(), Refusal> {
    let Some(consumer) = &call.exchange.consumer else { return Ok(()) };
    if !route.consumers.is_empty() && !route.consumers.contains(&consumer.name) {
        return Err(Refusal::forbidden("this route is not for this consumer"));
    }
    let scope = route.scope.as_ref().filter(|_| !consumer.scopes.is_empty());
    match scope {
        Some(scope) if !consumer.scopes.contains(scope) => {
            Err(Refusal::insufficient_scope(format!("the key lacks the scope `{scope}`")))
        }
        _ => Ok(()),
    }
}

/// What hyper lets pass but no gateway should.
fn check_framing(request: &Request<Incoming>, most: u64, doubt: &Doubt) -> Result<(), Refusal> {
    if request.headers().contains_key(TRANSFER_ENCODING) && doubt.take() {
        return Err(Refusal::bad_request(
            "`content-length` and `transfer-encoding` contradict each other",
        ));
    }
    if wanders(request.uri().path()) {
        return Err(Refusal::bad_request(
            "the path has `.` or `..` in it: send the path that is meant",
        ));
    }
    if request.body().size_hint().lower() > most {
        return Err(Refusal::too_large(format!("the body is larger than {most} bytes")));
    }
    Ok(())
}

async fn carry_out(call: Call, voice: Voice) -> Response<Body> {
    let route = Arc::clone(&call.exchange.route);
    let faults = call.exchange.config.faults;
    if faults.delay.nanos() > 0 {
        fault::delay(faults.delay.nanos()).await;
    }
    match &route.handler {
        Handler::Proxy(proxy) if proxy.llm => Box::pin(crate::llm::serve(call, proxy, voice)).await,
        Handler::Proxy(proxy) => forward::serve(call, proxy, voice).await,
        Handler::Request => Box::pin(crate::ask::serve(call)).await,
        handler => own::serve(call, handler, voice).await,
    }
}

/// Adds headers to an answer.
fn finish(mut response: Response<Body>, extra: Vec<Extra>) -> Response<Body> {
    for (name, value) in extra {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Answers with a refusal, and books it.
pub(crate) fn refuse(mut exchange: Exchange, refusal: Refusal, voice: Voice) -> Response<Body> {
    exchange.worker.shared().meters.error(refusal.kind);
    let response = refusal.answer(voice);
    let id = exchange.config.request_id.clone().zip(exchange.request_id.clone());
    close(&mut exchange, &response);
    finish(response, id.into_iter().collect())
}

/// Books an answer that is complete in memory.
pub(crate) fn close(exchange: &mut Exchange, response: &Response<Body>) {
    exchange.status = response.status();
    exchange.sent = response.body().size_hint().exact().unwrap_or(0);
    exchange.finish(true);
}

impl Call {
    /// What rows want to know of the request; copied only if there are rows.
    fn note(&mut self) {
        let spec = &self.exchange.config.spec;
        self.exchange.received = self.request.body().size_hint().lower();
        if spec.audit.is_some() || spec.access_log.is_some() {
            self.exchange.path = Some(Box::from(self.request.uri().path()));
            self.exchange.agent = self.request.headers().get(USER_AGENT).cloned();
        }
    }

    /// The client's request id, or one of ours, which the upstream sees as well.
    fn identify(&mut self, header: &HeaderName) -> HeaderValue {
        let given = self.request.headers().get(header).filter(|id| (1..=128).contains(&id.len()));
        let id = given.cloned().unwrap_or_else(|| fresh(self.exchange.worker.number()));
        self.request.headers_mut().insert(header.clone(), id.clone());
        self.exchange.request_id = Some(id.clone());
        id
    }
}

/// Sixteen hexadecimal digits.
fn fresh(number: u64) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (at, byte) in number.to_be_bytes().into_iter().enumerate() {
        digits[2 * at] = DIGITS[usize::from(byte >> 4)];
        digits[2 * at + 1] = DIGITS[usize::from(byte & 15)];
    }
    // Digits are always allowed.
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(&digits))
        .unwrap_or_else(|_| HeaderValue::from_static("0"))
}

/// Is this the method? `HEAD` is a `GET` without a body.
pub(crate) fn expect_method(found: &Method, wanted: &Method) -> Result<(), Refusal> {
    if found == wanted || (wanted == Method::GET && found == Method::HEAD) {
        return Ok(());
    }
    Err(Refusal::wrong_method(wanted))
}

/// An answer with JSON.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Full(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Is the body said to be JSON, or nothing at all?
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    match kind {
        Some(kind) if !kind.starts_with(b"application/json") => {
            Err(Refusal::wrong_type("send `content-type: application/json`"))
        }
        _ => Ok(()),
    }
}
