//! The steps of a request: its route is found, the layers admit it, and its handler responds.

use std::rc::Rc;
use std::sync::Arc;

use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};

use crate::assembly::agent_route::AgentRoute;
use crate::assembly::config::Config;
use crate::assembly::router::{Handler, Route, Router};
use crate::assembly::tool_route::ToolRoute;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::{Header, respond_error, with_headers};
use crate::exchange::response_body::ResponseBody;
use crate::exchange::worker::Worker;
use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::normal_form::{Refusal, normalise};
use crate::http::smuggling::ConnectionFlags;
use crate::layers::admin::ListenerRole;
use crate::layers::fault_injection;
use crate::layers::forwarded::{self, Peer};
use crate::layers::identity::Identity;
use crate::layers::rate_limit::{self, Caller};
use crate::routes::agent_routes;
use crate::routes::builtin_routes;
use crate::routes::llm;
use crate::routes::policy_endpoint;
use crate::routes::proxy;
use crate::routes::tools;
use crate::worker::identify::identify;

/// Responds to a request.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    mut request: Box<Request<Incoming>>,
    peer: Rc<Peer>,
    flags: &ConnectionFlags,
) -> Response<ResponseBody> {
    let config = worker.config();
    worker.metrics().served.inc();
    let refusal = normal_form(&mut request, &config, flags).err();
    let found = match refusal {
        None => router_of(&config, &worker).find(request.uri().path()),
        Some(_) => None,
    };
    let (route, parameter) = found.unwrap_or((&config.not_found_route, None));
    let no_layer_applies = !config.observes_requests
        && route.open
        && refusal.is_none()
        && config.request_id().is_none()
        && config.spec.faults.delay.nanos() == 0;
    if no_layer_applies && let Some(response) = fast_path(route, request.method()) {
        return response;
    }
    let context = RequestContext::new(&worker, &config, route, &request, peer);
    let format = error_format(&config, route, request.uri().path());
    let mut routed = RoutedRequest { request, context, parameter };
    record_request(&mut routed);
    match admit(&mut routed, refusal).await {
        Ok(headers) => with_headers(handle(routed, format).await, headers),
        Err(error) => respond_error(routed.context, error, format),
    }
}

fn router_of<'c>(config: &'c Config, worker: &Worker) -> &'c Router {
    match worker.role {
        ListenerRole::Clients => &config.router,
        ListenerRole::Administration => &config.admin_router,
    }
}

/// Brings the request into its normal form, including faults that the HTTP library corrected.
fn normal_form(
    request: &mut Request<Incoming>,
    config: &Config,
    flags: &ConnectionFlags,
) -> Result<(), Refusal> {
    if let Some(fault) = flags.next_head() {
        return Err(fault.into());
    }
    normalise(request, &config.owned_headers)
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
        Handler::Proxy(proxy) if proxy.is_llm(path) => {
            ErrorFormat::Llm(llm::dialect_of(path, proxy))
        }
        _ => config.error_format,
    }
}

/// Records the request's data for log rows; copied only if rows are written.
fn record_request(routed: &mut RoutedRequest) {
    let (request, context) = (&routed.request, &mut routed.context);
    context.bytes_received = request.body().size_hint().lower();
    if context.worker.state.request_log.is_enabled() {
        context.path = Some(Box::from(request.uri().path()));
        context.user_agent = request.headers().get(USER_AGENT).cloned();
    }
}

/// Passes a request through the layers that can refuse it. Returns headers for the response.
async fn admit(
    routed: &mut RoutedRequest,
    refusal: Option<Refusal>,
) -> Result<Vec<Header>, ErrorResponse> {
    let config = Arc::clone(&routed.context.config);
    let mut headers = Vec::new();
    if let Some(layer) = &config.layers.request_id {
        let worker = Rc::clone(&routed.context.worker);
        let id = layer.assign(routed.request.headers_mut(), move || worker.next_request_number());
        routed.context.request_id = Some(id.clone());
        headers.push((layer.header.clone(), id));
    }
    if let Some(refusal) = refusal {
        return Err(ErrorResponse::no_normal_form(refusal, routed.request.version()));
    }
    check_size(&routed.request, config.server.body_bytes.0)?;
    let route = Arc::clone(&routed.context.route);
    let request = routed.request.headers();
    if route.is_administration {
        config.admin.admit(routed.context.client, routed.context.worker.role, &routed.request)?;
    }
    if route.open {
        return Ok(headers);
    }
    let identity = if route.is_administration {
        Ok(None)
    } else {
        identify(&config, &route, routed.request.uri().path(), request).map(Some)
    };
    let identity = identity.or_else(|error| {
        // Administrators need not be a tenant to see a budget or a policy.
        let may = match &route.handler {
            Handler::Budget | Handler::Tools(ToolRoute::Policies) => {
                error.status == StatusCode::UNAUTHORIZED
            }
            _ => false,
        };
        let administrates = may
            && config
                .admin
                .admit(routed.context.client, routed.context.worker.role, &routed.request)
                .is_ok();
        if administrates { Ok(None) } else { Err(error) }
    });
    let known = identity.as_ref().ok().and_then(Option::as_ref);
    check_rate_limits(&routed.context, known, &mut headers).await?;
    routed.context.identity = identity?.unwrap_or_default();
    Ok(headers)
}

/// Whether headers of the client reach an upstream or an agent.
fn passes_headers_on(handler: &Handler) -> bool {
    match handler {
        Handler::Proxy(_) => true,
        Handler::Agents(route) => *route != AgentRoute::Agents,
        _ => false,
    }
}

/// Replaces the client's forwarding headers with the gateway's.
fn own_forwarded_headers(routed: &mut RoutedRequest) {
    let config = &routed.context.config;
    let authority = routed.request.uri().authority();
    let host = authority.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let host = host.or_else(|| routed.request.headers().get(HOST).cloned());
    let peer = &routed.context.peer;
    forwarded::rewrite(routed.request.headers_mut(), &config.trusted_proxies, peer, host);
}

async fn check_rate_limits(
    context: &RequestContext,
    identity: Option<&Identity>,
    headers: &mut Vec<Header>,
) -> Result<(), ErrorResponse> {
    let (config, worker) = (&context.config, &context.worker);
    if config.limits.is_empty() || config.spec.faults.limiter_open {
        return Ok(());
    }
    let caller = Caller { address: context.client, identity };
    rate_limit::check(&config.limits, &caller, &worker.store, worker.metrics(), headers).await
}

fn check_size(request: &Request<Incoming>, max_body: u64) -> Result<(), ErrorResponse> {
    if request.body().size_hint().lower() > max_body {
        let message = format!("the body is larger than {max_body} bytes");
        return Err(ErrorResponse::request_too_large(message));
    }
    Ok(())
}

async fn handle(mut routed: RoutedRequest, format: ErrorFormat) -> Response<ResponseBody> {
    let route = Arc::clone(&routed.context.route);
    if passes_headers_on(&route.handler) {
        own_forwarded_headers(&mut routed);
    }
    let faults = routed.context.config.spec.faults;
    if faults.delay.nanos() > 0 {
        fault_injection::delay(faults.delay.nanos()).await;
    }
    match &route.handler {
        Handler::Proxy(proxy) if proxy.is_llm(routed.request.uri().path()) => {
            Box::pin(llm::serve(routed, proxy, format)).await
        }
        Handler::Proxy(proxy) => Box::pin(proxy::serve(routed, proxy, format)).await,
        Handler::Policy => Box::pin(policy_endpoint::serve(routed)).await,
        Handler::Agents(route) => Box::pin(agent_routes::serve(routed, *route)).await,
        Handler::Tools(tool_route) => Box::pin(tools::serve(routed, *tool_route, format)).await,
        handler => builtin_routes::serve(routed, handler, format).await,
    }
}
