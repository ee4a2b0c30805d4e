//! Routes that an upstream serves.

use hyper::Response;
use hyper::header::CONTENT_LENGTH;

use crate::error_response::ErrorFormat;
use crate::forward::{self, UpstreamResponse};
use crate::request_body;
use crate::request_context::{RequestContext, RoutedRequest};
use crate::respond::{respond, respond_error};
use crate::response_body::ResponseBody;
use crate::router::Proxy;
use crate::scrub::ScrubText;
use crate::upstream::Upstream;
use crate::websocket;

/// Serves a request from an upstream.
pub(crate) async fn serve(
    mut routed: RoutedRequest,
    proxy: &Proxy,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    if proxy.websocket && websocket::is_requested(routed.request.headers()) {
        let result = Box::pin(websocket::serve(&mut routed, proxy)).await;
        return respond(routed.context, result, format);
    }
    let RoutedRequest { request, context, .. } = routed;
    let (parts, body) = request.into_parts();
    if context.worker.state.memory.is_short() {
        return respond_error(context, request_body::no_memory(), format);
    }
    let sent = match request_body::take(context.body_bounds(), body).await {
        Ok(body) => forward::send(&context, proxy, parts, body).await,
        Err(error) => Err(error),
    };
    match sent {
        Ok(upstream_response) => relay(context, upstream_response, &proxy.upstream),
        Err(error) => respond_error(context, error, format),
    }
}

/// The response for the client, its body still with the upstream.
fn relay(
    mut context: RequestContext,
    upstream_response: UpstreamResponse,
    upstream: &Upstream,
) -> Response<ResponseBody> {
    let (mut parts, mut body) = upstream_response.into_proxy_body(&context, upstream);
    if let Some(policy) = &context.config.scrub
        && let Some(filter) = ScrubText::for_response(policy, &parts.headers)
    {
        body.add_filter(Box::new(filter));
    }
    if body.changes_length() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    context.status = parts.status;
    body.set_context(context);
    Response::from_parts(parts, ResponseBody::Proxy(Box::new(body)))
}
