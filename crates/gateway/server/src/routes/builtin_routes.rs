//! The built-in routes: health, metrics, administration, fixed responses.

use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::json;

use crate::assembly::config::Config;
use crate::assembly::router::{FixedResponse, Handler};
use crate::config::error::GatewayError;
use crate::exchange::request_context::RoutedRequest;
use crate::exchange::respond::{HandlerResult, expect_method, json as json_response, respond};
use crate::exchange::response_body::ResponseBody;
use crate::exchange::state::GatewayState;
use crate::http::error_response::{ErrorFormat, ErrorResponse, no_such};
use crate::http::normal_form::decoded;

/// Media type of the Prometheus text format.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn serve(
    routed: RoutedRequest,
    handler: &Handler,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let result = handle(&routed, handler).await;
    respond(routed.context, result, format)
}

async fn handle(routed: &RoutedRequest, handler: &Handler) -> HandlerResult {
    let (method, config) = (routed.request.method(), &routed.context.config);
    let state = &routed.context.worker.state;
    if let Handler::Fixed(fixed) = handler {
        return Ok(self::fixed(fixed));
    }
    if let Handler::NotFound = handler {
        return Err(ErrorResponse::not_found(no_such("route")));
    }
    let wanted = if matches!(handler, Handler::Reload) { Method::POST } else { Method::GET };
    expect_method(method, &wanted)?;
    match handler {
        Handler::Health => Ok(health(state, config)),
        Handler::Ready => Ok(ready(config)),
        Handler::Metrics => Ok(metrics(state, config)),
        Handler::Build => Ok(build(state, config)),
        Handler::Reload => reload(state),
        Handler::Budget => budget(routed).await,
        _ => Ok(live()),
    }
}

/// `GET /health/live`.
pub(crate) fn live() -> Response<ResponseBody> {
    with_media_type(ResponseBody::text("{\"alive\":true}"), "application/json")
}

/// A fixed response of the configuration.
pub(crate) fn fixed(fixed: &FixedResponse) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Full(fixed.body.clone()));
    *response.status_mut() = fixed.status;
    response.headers_mut().insert(CONTENT_TYPE, fixed.content_type.clone());
    response
}

fn with_media_type(body: ResponseBody, media_type: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The health of the process itself: plain text if the configured error format is plain text.
fn health(state: &GatewayState, config: &Config) -> Response<ResponseBody> {
    if config.error_format == ErrorFormat::Plain {
        return with_media_type(ResponseBody::text("OK"), "text/plain; charset=utf-8");
    }
    let mut body = json!({"status": "ok", "service": config.spec.name,
        "version": env!("CARGO_PKG_VERSION")});
    let store = state.backend.is_lost().then_some("store");
    for part in state.request_log.failing().chain(store) {
        body["status"] = "degraded".into();
        body[part] = "failing".into();
    }
    if config.layers.tools.is_some() {
        body["mcp_servers"] = state.tools.registry().servers().len().into();
    }
    json_response(StatusCode::OK, body.to_string())
}

/// Ready when every upstream has a server that is available.
fn ready(config: &Config) -> Response<ResponseBody> {
    let unavailable = config
        .upstreams
        .iter()
        .filter(|upstream| !upstream.endpoints.iter().any(|endpoint| endpoint.is_available()));
    let failed: Vec<_> =
        unavailable.map(|upstream| format!("upstream {}", upstream.name)).collect();
    let status = if failed.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body =
        json!({"ready": failed.is_empty(), "service": config.spec.name, "checks_failed": failed});
    json_response(status, body.to_string())
}

fn metrics(state: &GatewayState, config: &Config) -> Response<ResponseBody> {
    for upstream in &config.upstreams {
        for endpoint in &upstream.endpoints {
            let available = endpoint.is_available();
            state.metrics.set_upstream(&upstream.name, &endpoint.address, available);
        }
    }
    state.update_gauges();
    with_media_type(ResponseBody::Full(state.metrics.text().into()), PROMETHEUS_TEXT)
}

fn build(state: &GatewayState, config: &Config) -> Response<ResponseBody> {
    let body = json!({
        "service": config.spec.name,
        "version": env!("CARGO_PKG_VERSION"),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "config": config.digest,
        "workers": config.spec.workers,
        "layers": config.layer_names,
        "faults": config.spec.faults(),
        "store": if config.spec.store.redis.is_some() { "redis" } else { "embedded" },
        "served": state.metrics.served.get(),
    });
    json_response(StatusCode::OK, body.to_string())
}

/// Reloads the configuration file. If the file is invalid or needs a restart, the old configuration
/// stays in force. The response repeats no value of the file.
fn reload(state: &Arc<GatewayState>) -> HandlerResult {
    let config = state.reload().map_err(|error| {
        let message = format!("{}; the old configuration stays in force", error.summary());
        match error {
            GatewayError::Restart(_) => ErrorResponse::restart_needed(message),
            _ => ErrorResponse::bad_request(format!(
                "{message}; SIGHUP and `--print` show what is wrong"
            )),
        }
    })?;
    Ok(build(state, &config))
}

/// `GET /v1/budget/{tenant}`.
async fn budget(routed: &RoutedRequest) -> HandlerResult {
    let context = &routed.context;
    let (Some(budgets), Some(tenant)) = (&context.config.layers.budgets, &routed.parameter) else {
        return Err(ErrorResponse::not_found(no_such("budget")));
    };
    let tenant = decoded(tenant);
    match context.identity.tenant.as_deref() {
        Some(own) if own == tenant => {}
        Some(_) => {
            let message = "tenant mismatch: this budget is another tenant's";
            return Err(ErrorResponse::forbidden(message));
        }
        None => {
            context.config.admin.admit(context.client, context.worker.role, &routed.request)?;
        }
    }
    let state = budgets.state(&context.worker.store, &tenant).await?;
    Ok(json_response(StatusCode::OK, state.to_string()))
}
