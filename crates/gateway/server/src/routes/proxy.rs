//! Routes that an upstream serves.

use std::sync::Arc;

use hyper::body::Body as _;
use hyper::header::CONTENT_LENGTH;
use hyper::{Method, Response};
use plimsoll_gateway_inspect::Source;

use crate::exchange::document;
use crate::exchange::forward::{self, UpstreamResponse};
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::{HandlerResult, respond, respond_error};
use crate::exchange::response_body::ResponseBody;
use crate::http::body_filter::BodyFilter;
use crate::http::content::ask_for_readable;
use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::normal_form;
use crate::http::request_body::{self, RequestBody};
use crate::layers::Reading;
use crate::routes::websocket;
use crate::upstream::Upstream;
use crate::upstream::proxy::Proxy;

/// Serves a request from an upstream.
pub(crate) async fn serve(
    mut routed: RoutedRequest,
    proxy: &Proxy,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    if proxy.websocket && normal_form::is_websocket(routed.request.headers()) {
        let result = Box::pin(websocket::serve(&mut routed, proxy)).await;
        return respond(routed.context, result, format);
    }
    let RoutedRequest { request, context, .. } = routed;
    let (mut parts, body) = request.into_parts();
    let has_body = parts.method != Method::HEAD;
    if proxy.refuses_unread(parts.uri.path()) && !body.is_end_stream() {
        return respond_error(context, unread(), format);
    }
    if context.worker.state.memory.is_short() {
        return respond_error(context, request_body::no_memory(), format);
    }
    if context.config.layers.change_answers() {
        ask_for_readable(&mut parts.headers);
    }
    let taken = if [Method::GET, Method::HEAD].contains(&parts.method) {
        // The HTTP library would omit a body of unknown length.
        request_body::collect(context.body_bounds(), body).await.map(RequestBody::Full)
    } else {
        request_body::take(context.body_bounds(), body).await
    };
    let sent = match taken {
        Ok(body) => forward::send(&context, proxy, &mut parts, body).await,
        Err(error) => Err(error),
    };
    let upstream_response = match sent {
        Ok(upstream_response) => upstream_response,
        Err(error) => return respond_error(context, error, format),
    };
    if has_body {
        answer(context, upstream_response, &proxy.upstream, format).await
    } else {
        relay(context, upstream_response, &proxy.upstream, Vec::new())
    }
}

/// The refusal of a request that a policy or a budget must read but cannot.
fn unread() -> ErrorResponse {
    ErrorResponse::not_found(
        "this looks like an LLM API that policy and budgets cannot read: see `policy.unjudged`",
    )
}

/// The response for the client, as changed by the layers.
pub(crate) async fn answer(
    context: Box<RequestContext>,
    mut upstream_response: Box<UpstreamResponse>,
    upstream: &Upstream,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let layers = &Arc::clone(&context.config).layers;
    if !layers.change_answers() {
        return relay(context, upstream_response, upstream, Vec::new());
    }
    upstream_response.decode();
    let response = &upstream_response.response;
    // An empty body needs no type.
    let reading = if response.body().is_end_stream() {
        Ok(Reading::Nothing)
    } else {
        layers.reading(response.headers(), Reading::Text)
    };
    match reading {
        Ok(Reading::Json) => {
            let result = scrub_whole(&context, upstream_response).await;
            respond(context, result, format)
        }
        Ok(reading) => relay(context, upstream_response, upstream, layers.filters(reading)),
        Err(error) => respond_error(context, error, format),
    }
}

async fn scrub_whole(
    context: &RequestContext,
    upstream_response: Box<UpstreamResponse>,
) -> HandlerResult {
    let (mut parts, body) = upstream_response.collect(context).await?;
    let body = document::scrub(context, body, Reading::Json, Source::Data).await?;
    parts.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(parts, ResponseBody::Full(body)))
}

/// The response for the client, streamed from the upstream.
fn relay(
    mut context: Box<RequestContext>,
    upstream_response: Box<UpstreamResponse>,
    upstream: &Upstream,
    filters: Vec<Box<dyn BodyFilter>>,
) -> Response<ResponseBody> {
    let (mut parts, mut body) = upstream_response.into_proxy_body(&context, upstream);
    for filter in filters {
        body.add_filter(filter);
    }
    if body.changes_length() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    context.status = parts.status;
    body.set_context(context);
    Response::from_parts(parts, ResponseBody::Proxy(Box::new(body)))
}
