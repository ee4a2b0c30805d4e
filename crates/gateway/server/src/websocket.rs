//! `WebSocket` connections: after the handshake, bytes pass both ways unchanged.

use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::clock;
use crate::error_response::ErrorResponse;
use crate::forward::{NO_SERVER, SLOW_UPSTREAM, upstream_uri};
use crate::headers::prepare_request;
use crate::request_body::RequestBody;
use crate::request_context::RoutedRequest;
use crate::respond::HandlerResult;
use crate::response_body::ResponseBody;
use crate::router::Proxy;
use crate::upstream::InFlightGuard;

/// Asks the upstream for a `WebSocket`, and joins both connections when it agrees.
pub(crate) async fn serve(routed: &mut RoutedRequest, proxy: &Proxy) -> HandlerResult {
    let pool = Rc::clone(&routed.context.worker.pool);
    let unavailable = || ErrorResponse::upstream_unavailable(NO_SERVER);
    let endpoint = proxy.upstream.choose(None, clock::now()).ok_or_else(unavailable)?;
    let mut request = Request::new(RequestBody::Full(Bytes::new()));
    *request.uri_mut() = upstream_uri(routed.request.uri(), proxy.strip.as_deref())?;
    *request.headers_mut() = routed.request.headers().clone();
    let headers = request.headers_mut();
    prepare_request(headers, &routed.context.config, &proxy.upstream)?;
    headers.insert(HOST, endpoint.host.clone());
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let in_flight = InFlightGuard::new(endpoint);
    let sent = timeout(proxy.timeout.0, pool.send(endpoint, request)).await;
    let sent = sent.map_err(|_| ErrorResponse::upstream_timeout(SLOW_UPSTREAM))?;
    let (mut response, upstream_connection) =
        sent.map_err(|_| ErrorResponse::bad_gateway("the upstream cannot be reached"))?;
    endpoint.record(!response.status().is_server_error(), clock::now());
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(ErrorResponse::bad_gateway(format!(
            "the upstream did not switch to WebSocket: it answered {}",
            response.status()
        )));
    }
    let upstream = hyper::upgrade::on(&mut response);
    let client = hyper::upgrade::on(&mut routed.request);
    spawn_local(async move {
        // If one side's upgrade fails, its connection broke; the other side notices when it is
        // dropped.
        if let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) {
            let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            let _ = copy_bidirectional(&mut client, &mut upstream).await;
        }
        drop((in_flight, upstream_connection));
    });
    let (mut parts, _) = response.into_parts();
    parts.extensions.clear();
    Ok(Response::from_parts(parts, ResponseBody::EMPTY))
}
