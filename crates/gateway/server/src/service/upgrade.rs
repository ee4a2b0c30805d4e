//! `WebSocket`s: after the handshake, bytes go both ways untouched.

use bytes::Bytes;
use hyper::header::{CONNECTION, HOST, UPGRADE};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::Call;
use super::forward::{clean, target};
use crate::body::{Body, Upload};
use crate::clock;
use crate::refusal::Refusal;
use crate::router::Proxy;
use crate::upstream::Active;

/// Does the client want to change to WebSocket?
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Asks the upstream for the same, and joins both connections when it agrees.
pub(super) async fn serve(call: &mut Call, proxy: &Proxy) -> Result<Response<Body>, Refusal> {
    let worker = std::rc::Rc::clone(&call.exchange.worker);
    let unfit = || Refusal::unavailable("no server of the upstream is fit for requests now");
    let endpoint = proxy.upstream.choose(None, clock::now()).ok_or_else(unfit)?;
    let mut request = Request::new(Upload::Full(Bytes::new()));
    *request.uri_mut() = target(call.request.uri(), proxy.strip.as_deref())?;
    *request.headers_mut() = call.request.headers().clone();
    let headers = request.headers_mut();
    let (connection, upgrade) = (headers.get(CONNECTION).cloned(), headers.get(UPGRADE).cloned());
    clean(headers, &call.exchange.config, &proxy.upstream)?;
    headers.insert(HOST, endpoint.host.clone());
    headers.extend(connection.map(|value| (CONNECTION, value)));
    headers.extend(upgrade.map(|value| (UPGRADE, value)));
    let active = Active::at(endpoint);
    let sent = timeout(proxy.timeout.0, worker.pool().send(endpoint, request)).await;
    let sent = sent.map_err(|_| Refusal::upstream_slow("the upstream did not answer in time"))?;
    let (mut theirs, link) =
        sent.map_err(|_| Refusal::bad_gateway("the upstream cannot be reached"))?;
    endpoint.learn(!theirs.status().is_server_error(), clock::now());
    if theirs.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(Refusal::bad_gateway(format!(
            "the upstream did not change to WebSocket: it answered {}",
            theirs.status()
        )));
    }
    let upstream = hyper::upgrade::on(&mut theirs);
    let client = hyper::upgrade::on(&mut call.request);
    spawn_local(async move {
        // A side that does not come is a connection that broke, which the other one sees when it is dropped.
        if let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) {
            let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            let _ = copy_bidirectional(&mut client, &mut upstream).await;
        }
        drop((active, link));
    });
    let (mut parts, _) = theirs.into_parts();
    parts.extensions.clear();
    Ok(Response::from_parts(parts, Body::EMPTY))
}
