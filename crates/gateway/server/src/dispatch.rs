//! The way of a request: its route is found, it is admitted by the layers, and its handler
//! responds.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT};
use hyper::{Method, Request, Response};

use crate::builtin_routes;
use crate::config::Config;
use crate::error_response::{ErrorFormat, ErrorResponse};
use crate::fault_injection;
use crate::llm;
use crate::policy_endpoint;
use crate::proxy;
use crate::rate_limit::{self, Caller};
use crate::request_context::{RequestContext, RoutedRequest};
use crate::respond::{Header, respond_error, with_headers};
use crate::response_body::ResponseBody;
use crate::router::{Handler, Route};
use crate::smuggling::{ConnectionFlags, has_dot_segments};
use crate::worker::Worker;

/// Responds to a request.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    request: Request<Incoming>,
    client: SocketAddr,
    flags: &ConnectionFlags,
) -> Response<ResponseBody> {
    let config = worker.config();
    worker.metrics().count_served();
    let found = config.router.find(request.uri().path());
    let (route, parameter) = found.unwrap_or((&config.not_found_route, None));
    let no_layer_applies = !config.observes_requests
        && route.open
        && config.request_id.is_none()
        && config.faults.delay.nanos() == 0;
    if no_layer_applies && let Some(response) = fast_path(route, request.method()) {
        return response;
    }
    let context = RequestContext::new(&worker, &config, route, (request.method(), client));
    let format = error_format(&config, route, request.uri().path());
    let mut routed = RoutedRequest { request, context, parameter };
    record_request(&mut routed);
    match admit(&mut routed, flags).await {
        Ok(headers) => with_headers(handle(routed, format).await, headers),
        Err(error) => respond_error(routed.context, error, format),
    }
}

/// Static responses, for routes to which no layer applies.
fn fast_path(route: &Route, method: &Method) -> Option<Response<ResponseBody>> {
    match &route.handler {
        Handler::Live if matches!(*method, Method::GET | Method::HEAD) => {
            Some(builtin_routes::live())
        }
        Handler::Fixed(fixed) => Some(builtin_routes::fixed(fixed)),
        _ => None,
    }
}

fn error_format(config: &Config, route: &Route, path: &str) -> ErrorFormat {
    match &route.handler {
        Handler::Proxy(proxy) if proxy.llm => ErrorFormat::Llm(llm::dialect_of(path, proxy)),
        _ => config.error_format,
    }
}

/// Records what rows contain of the request; copied only if rows are written.
fn record_request(routed: &mut RoutedRequest) {
    let (request, context) = (&routed.request, &mut routed.context);
    context.bytes_received = request.body().size_hint().lower();
    let spec = &context.config.spec;
    if spec.audit.is_some() || spec.access_log.is_some() {
        context.path = Some(Box::from(request.uri().path()));
        context.user_agent = request.headers().get(USER_AGENT).cloned();
    }
}

/// Passes a request through the layers that can refuse it. Returns headers for the response.
async fn admit(
    routed: &mut RoutedRequest,
    flags: &ConnectionFlags,
) -> Result<Vec<Header>, ErrorResponse> {
    let config = Arc::clone(&routed.context.config);
    let mut headers = Vec::new();
    if let Some(header) = &config.request_id {
        headers.push((header.clone(), assign_request_id(routed, header)));
    }
    check_framing(&routed.request, config.server.body_bytes.0, flags)?;
    let route = Arc::clone(&routed.context.route);
    if route.open {
        return Ok(headers);
    }
    if let Some(auth) = &config.auth {
        let consumer = auth.consumer(routed.request.headers())?;
        routed.context.consumer = Some(Arc::clone(consumer));
        check_consumer(&routed.context, &route)?;
    }
    if let Some(tenant) = &config.tenant {
        let consumer = routed.context.consumer.as_deref();
        routed.context.tenant = tenant.tenant(routed.request.headers(), consumer)?;
    }
    check_rate_limits(&routed.context, &mut headers).await?;
    Ok(headers)
}

async fn check_rate_limits(
    context: &RequestContext,
    headers: &mut Vec<Header>,
) -> Result<(), ErrorResponse> {
    let (config, worker) = (&context.config, &context.worker);
    if config.limits.is_empty() || config.faults.limiter_open {
        return Ok(());
    }
    let caller = Caller {
        address: context.client.ip(),
        tenant: context.tenant.as_deref(),
        key: context.consumer.as_ref().map(|consumer| &*consumer.name),
    };
    let services = (&worker.store, worker.metrics());
    rate_limit::check(&config.limits, &caller, services, headers).await
}

/// Checks that the consumer may use the route.
fn check_consumer(context: &RequestContext, route: &Route) -> Result<(), ErrorResponse> {
    let Some(consumer) = &context.consumer else { return Ok(()) };
    if !route.consumers.is_empty() && !route.consumers.contains(&consumer.name) {
        return Err(ErrorResponse::forbidden("this route is not for this consumer"));
    }
    let scope = route.scope.as_ref().filter(|_| !consumer.scopes.is_empty());
    match scope {
        Some(scope) if !consumer.scopes.contains(scope) => {
            Err(ErrorResponse::insufficient_scope(format!("the key lacks the scope `{scope}`")))
        }
        _ => Ok(()),
    }
}

/// Refuses requests that hyper accepts but a gateway must not pass on.
fn check_framing(
    request: &Request<Incoming>,
    max_body: u64,
    flags: &ConnectionFlags,
) -> Result<(), ErrorResponse> {
    if request.headers().contains_key(TRANSFER_ENCODING) && flags.take_two_lengths() {
        return Err(ErrorResponse::bad_request(
            "`content-length` and `transfer-encoding` contradict each other",
        ));
    }
    if has_dot_segments(request.uri().path()) {
        return Err(ErrorResponse::bad_request(
            "the path has `.` or `..` segments: send the path without them",
        ));
    }
    if request.body().size_hint().lower() > max_body {
        let message = format!("the body is larger than {max_body} bytes");
        return Err(ErrorResponse::request_too_large(message));
    }
    Ok(())
}

async fn handle(routed: RoutedRequest, format: ErrorFormat) -> Response<ResponseBody> {
    let route = Arc::clone(&routed.context.route);
    let faults = routed.context.config.faults;
    if faults.delay.nanos() > 0 {
        fault_injection::delay(faults.delay.nanos()).await;
    }
    match &route.handler {
        Handler::Proxy(proxy) if proxy.llm => Box::pin(llm::serve(routed, proxy, format)).await,
        Handler::Proxy(proxy) => proxy::serve(routed, proxy, format).await,
        Handler::Policy => Box::pin(policy_endpoint::serve(routed)).await,
        handler => builtin_routes::serve(routed, handler, format).await,
    }
}

/// Takes the client's request id, or generates one; the upstream sees it as well.
fn assign_request_id(routed: &mut RoutedRequest, header: &HeaderName) -> HeaderValue {
    let given = routed.request.headers().get(header).filter(|id| (1..=128).contains(&id.len()));
    let id = given.cloned().unwrap_or_else(|| to_hex(routed.context.worker.next_request_number()));
    routed.request.headers_mut().insert(header.clone(), id.clone());
    routed.context.request_id = Some(id.clone());
    id
}

/// Sixteen hexadecimal digits.
fn to_hex(number: u64) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (index, byte) in number.to_be_bytes().into_iter().enumerate() {
        digits[2 * index] = DIGITS[usize::from(byte >> 4)];
        digits[2 * index + 1] = DIGITS[usize::from(byte & 15)];
    }
    // Digits are always allowed.
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(&digits))
        .unwrap_or_else(|_| HeaderValue::from_static("0"))
}
