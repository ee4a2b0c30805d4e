//! `WebSocket` connections: after the handshake, bytes are relayed unchanged.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until, timeout};

use crate::exchange::connection_slot::ConnectionSlot;
use crate::exchange::forward::{NO_SERVER, NO_UPSTREAM, SLOW_UPSTREAM, is_failure, upstream_uri};
use crate::exchange::headers::prepare_request;
use crate::exchange::request_context::RoutedRequest;
use crate::exchange::respond::HandlerResult;
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::RequestBody;
use crate::upstream::proxy::Proxy;

/// Buffer of each direction.
const BUFFER: usize = 8 << 10;

/// Requests a `WebSocket` from the upstream, and joins both connections if it agrees.
pub(crate) async fn serve(routed: &mut RoutedRequest, proxy: &Proxy) -> HandlerResult {
    let pool = Rc::clone(&routed.context.worker.pool);
    let in_flight = proxy
        .upstream
        .choose(None)
        .ok_or_else(|| ErrorResponse::upstream_unavailable(NO_SERVER))?;
    let endpoint = &in_flight.endpoint;
    let mut request = Box::new(Request::new(RequestBody::Full(Bytes::new())));
    *request.uri_mut() = upstream_uri(routed.request.uri(), proxy.strip.as_deref())?;
    *request.headers_mut() = routed.request.headers().clone();
    let headers = request.headers_mut();
    prepare_request(headers, &routed.context.config, &proxy.upstream)?;
    headers.insert(HOST, endpoint.host.clone());
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let sent = timeout(proxy.timeout.0, pool.send(endpoint, request, false)).await;
    let success = matches!(&sent, Ok(Ok((response, _))) if !is_failure(response.status()));
    in_flight.record(success);
    let sent = sent.map_err(|_| ErrorResponse::upstream_timeout(SLOW_UPSTREAM))?;
    let (mut response, upstream_connection) =
        sent.map_err(|_| ErrorResponse::bad_gateway(NO_UPSTREAM))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(ErrorResponse::bad_gateway(format!(
            "the upstream did not switch to WebSocket: it answered {}",
            response.status()
        )));
    }
    let upstream = hyper::upgrade::on(&mut response);
    let client = hyper::upgrade::on(&mut *routed.request);
    let limit = routed.context.config.server.websocket_timeout.0;
    let slot = routed.request.extensions_mut().remove::<Arc<ConnectionSlot>>();
    spawn_local(async move {
        // If one side's upgrade fails, its connection broke; the other side is closed by the drop.
        if let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) {
            tokio::select! {
                () = relay(client, upstream, limit) => {}
                () = stopped(slot.as_deref()) => {}
            }
        }
        drop((in_flight, upstream_connection, slot));
    });
    let (mut parts, _) = response.into_parts();
    parts.extensions.clear();
    Ok(Response::from_parts(parts, ResponseBody::EMPTY))
}

/// Relays bytes in both directions until both ends close, one breaks, or the idle limit is reached.
async fn relay(client: Upgraded, upstream: Upgraded, limit: Duration) {
    let last = Cell::new(Instant::now());
    let (from_client, to_client) = split(TokioIo::new(client));
    let (from_upstream, to_upstream) = split(TokioIo::new(upstream));
    tokio::select! {
        _ = async {
            tokio::try_join!(pass(from_client, to_upstream, &last), pass(from_upstream, to_client, &last))
        } => {}
        () = idle(&last, limit) => {}
    }
}

/// Relays bytes in one direction, and records the time of writes.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    last: &Cell<Instant>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
        to.flush().await?;
        last.set(Instant::now());
    }
}

/// Waits for the idle limit.
async fn idle(last: &Cell<Instant>, limit: Duration) {
    while last.get().elapsed() < limit {
        sleep_until(last.get() + limit).await;
    }
}

/// Waits until the gateway stops, because a `WebSocket` does not end by itself.
async fn stopped(slot: Option<&ConnectionSlot>) {
    match slot.map(ConnectionSlot::stop) {
        Some(mut stop) => drop(stop.wait_for(|stopped| *stopped).await),
        None => std::future::pending().await,
    }
}
