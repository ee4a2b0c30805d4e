//! What the gateway itself answers: health, metrics, administration.

use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::json;

use super::{Answer, Call, close, expect_method, json as answer_json, refuse};
use crate::body::Body;
use crate::clock;
use crate::config::Config;
use crate::refusal::{Refusal, Voice};
use crate::router::{Fixed, Handler};
use crate::shared::Shared;

/// Media type of the text exposition format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn serve(call: Call, handler: &Handler, voice: Voice) -> Response<Body> {
    match answer(&call, handler).await {
        Ok(response) => {
            let mut exchange = call.exchange;
            close(&mut exchange, &response);
            response
        }
        Err(refusal) => refuse(call.exchange, refusal, voice),
    }
}

async fn answer(call: &Call, handler: &Handler) -> Answer {
    let (method, config) = (call.request.method(), &call.exchange.config);
    let shared = call.exchange.worker.shared();
    if let Handler::Fixed(fixed) = handler {
        return Ok(self::fixed(fixed));
    }
    if let Handler::Nowhere = handler {
        return Err(Refusal::not_found("there is no such route"));
    }
    let wanted = if matches!(handler, Handler::Reload) { Method::POST } else { Method::GET };
    expect_method(method, &wanted)?;
    match handler {
        Handler::Health => Ok(health(config)),
        Handler::Ready => Ok(ready(config)),
        Handler::Metrics => Ok(metrics(shared, config)),
        Handler::Build => Ok(build(shared, config)),
        Handler::Reload => reload(call),
        Handler::Budget => crate::budget::show(call).await,
        _ => Ok(live()),
    }
}

pub(super) fn live() -> Response<Body> {
    typed(Body::text("{\"alive\":true}"))
}

pub(super) fn fixed(fixed: &Fixed) -> Response<Body> {
    let mut response = Response::new(Body::Full(fixed.body.clone()));
    *response.status_mut() = fixed.status;
    response.headers_mut().insert(CONTENT_TYPE, fixed.kind.clone());
    response
}

fn typed(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Where errors are plain text, so is this.
fn health(config: &Config) -> Response<Body> {
    if config.voice == Voice::Plain {
        let mut response = Response::new(Body::text("OK"));
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        return response;
    }
    let told =
        json!({"status": "ok", "service": config.name, "version": env!("CARGO_PKG_VERSION")});
    answer_json(StatusCode::OK, told.to_string())
}

/// Ready when every upstream has an address that gets requests.
fn ready(config: &Config) -> Response<Body> {
    let now = clock::now();
    let unfit = config
        .upstreams
        .iter()
        .filter(|upstream| !upstream.endpoints.iter().any(|endpoint| endpoint.is_fit(now)));
    let failed: Vec<_> = unfit.map(|upstream| format!("upstream {}", upstream.name)).collect();
    let status = if failed.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let told = json!({"ready": failed.is_empty(), "service": config.name, "checks_failed": failed});
    answer_json(status, told.to_string())
}

/// The registry is walked anew for each call.
fn metrics(shared: &Arc<Shared>, config: &Config) -> Response<Body> {
    let now = clock::now();
    for upstream in &config.upstreams {
        for endpoint in &upstream.endpoints {
            shared.meters.upstream(&upstream.name, &endpoint.address, endpoint.is_fit(now));
        }
    }
    shared.gauge();
    let mut response = Response::new(Body::Full(shared.meters.text().into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EXPOSITION));
    response
}

fn build(shared: &Arc<Shared>, config: &Config) -> Response<Body> {
    let told = json!({
        "service": config.name,
        "version": env!("CARGO_PKG_VERSION"),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "config": config.digest,
        "workers": config.spec.workers,
        "layers": config.layers,
        "faults": config.spec.faults(),
        "store": if config.spec.store.redis.is_some() { "redis" } else { "embedded" },
        "served": shared.meters.served(),
    });
    answer_json(StatusCode::OK, told.to_string())
}

/// Puts the configuration's file in force, or says what is wrong with it and leaves the old one be.
fn reload(call: &Call) -> Answer {
    let worker = &call.exchange.worker;
    let config = worker.shared().reload().map_err(|error| {
        Refusal::bad_request(format!("{error}; the old configuration stays in force"))
    })?;
    Ok(build(worker.shared(), &config))
}
