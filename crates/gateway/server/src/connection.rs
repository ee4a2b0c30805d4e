//! One connection of a client, from its first byte to its end.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::dispatch;
use crate::response_body::ResponseBody;
use crate::smuggling::{ConnectionFlags, InspectedStream};
use crate::spec::ServerSpec;
use crate::worker::Worker;

/// The first bytes of an HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Buffer for the first bytes of a connection: most requests without a body fit.
const FIRST_READ: usize = 1 << 10;

/// Limits of one HTTP/2 connection: windows that do not throttle a stream, and enough streams.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
const MAX_STREAMS: u32 = 1_000;

/// Runs the tasks of hyper's HTTP/2 on the worker's thread.
#[derive(Clone, Copy, Debug)]
struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http1,
    Http2,
}

/// Serves one connection to its end, or until the gateway stops.
pub(crate) async fn serve_connection(
    worker: &Rc<Worker>,
    stream: TcpStream,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
) {
    // Otherwise the kernel holds back small chunks of a stream; this fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    let limit = worker.config().server.header_timeout.0;
    if let Some(tls) = &worker.state.tls {
        let Ok(Ok(stream)) = timeout(limit, tls.accept(stream)).await else { return };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let version = if is_http2 { Version::Http2 } else { Version::Http1 };
        return serve_http(worker, stream, (version, Bytes::new()), peer, stop).await;
    }
    let mut stream = stream;
    let detected = tokio::select! {
        detected = timeout(limit, detect_version(&mut stream)) => detected,
        _ = stop.wait_for(|stopped| *stopped) => return,
    };
    if let Ok(Some(start)) = detected {
        serve_http(worker, stream, start, peer, stop).await;
    }
}

/// Detects the protocol from the first bytes and returns both; `None` if the client closes without
/// sending any. hyper-util can do the same, but waits without a time limit, and hyper's own timers
/// start after it.
async fn detect_version(stream: &mut TcpStream) -> Option<(Version, Bytes)> {
    let mut first = BytesMut::with_capacity(FIRST_READ);
    loop {
        let read = stream.read_buf(&mut first).await.ok()?;
        let length = first.len().min(PREFACE.len());
        if first[..length] != PREFACE[..length] {
            return Some((Version::Http1, first.freeze()));
        }
        if length == PREFACE.len() {
            return Some((Version::Http2, first.freeze()));
        }
        if read == 0 {
            return None;
        }
    }
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    worker: &Rc<Worker>,
    stream: S,
    (version, first): (Version, Bytes),
    peer: SocketAddr,
    stop: watch::Receiver<bool>,
) {
    let (worker, config) = (Rc::clone(worker), worker.config());
    let flags = ConnectionFlags::default();
    let format = (version == Version::Http1).then_some(config.error_format);
    let io = TokioIo::new(InspectedStream::new(stream, first, flags.clone(), format));
    let service = service_fn(move |request| {
        let (worker, flags) = (Rc::clone(&worker), flags.clone());
        async move {
            let response = dispatch::serve(worker, request, peer, &flags).await;
            flags.set_last_status(response.status());
            Ok::<_, Infallible>(response)
        }
    });
    match version {
        Version::Http1 => serve_http1(&config.server, io, service, stop).await,
        Version::Http2 => serve_http2(&config.server, io, service, stop).await,
    }
}

/// Errors are ignored: the client caused them or the gateway injected them, and the request is
/// already logged.
async fn serve_http1<S, H>(
    server: &ServerSpec,
    io: TokioIo<InspectedStream<S>>,
    service: H,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: HttpService<Incoming, ResBody = ResponseBody, Error = Infallible>,
{
    let head = usize::try_from(server.header_bytes.0).unwrap_or(usize::MAX);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(server.header_timeout.0)
        .max_headers(server.headers)
        .max_buf_size(head.max(8_192))
        .writev(false);
    let mut connection = pin!(builder.serve_connection(io, service).with_upgrades());
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stop.wait_for(|stopped| *stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// As [`serve_http1`]. A client that does not answer a PING in time is disconnected. So is one that
/// stops in the middle of a header block, since it may not answer a PING in between.
async fn serve_http2<S, H>(
    server: &ServerSpec,
    io: TokioIo<InspectedStream<S>>,
    service: H,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: HttpService<Incoming, ResBody = ResponseBody, Error = Infallible>,
    H::Future: 'static,
{
    let mut builder = http2::Builder::new(LocalExecutor);
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(server.header_timeout.0)
        .keep_alive_timeout(server.header_timeout.0)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(server.header_bytes.0).unwrap_or(u32::MAX));
    let mut connection = pin!(builder.serve_connection(io, service));
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stop.wait_for(|stopped| *stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
