//! One connection of a client, from its first byte to its end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::base::memory::MemoryBudget;
use crate::config::server::ServerSpec;
use crate::exchange::connection_slot::ConnectionSlot;
use crate::exchange::response_body::ResponseBody;
use crate::exchange::worker::Worker;
use crate::http::smuggling::{ConnectionFlags, InspectedStream};
use crate::layers::forwarded::Peer;
use crate::worker::client_socket::ClientSocket;
use crate::worker::dispatch;
use crate::worker::http2_streams::{Streams, WatchedBody};

/// The first bytes of an HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Buffer for the first bytes of a connection: most requests without a body fit.
const FIRST_READ: usize = 1 << 10;

/// The HTTP library's limit of headers, which is the default. Another limit costs a table that is
/// initialized for each head.
const MAX_HEADERS: usize = 100;

/// Bytes of a response that the kernel accepts before it can send them.
const UNSENT: u32 = 128 << 10;

/// Limits of one HTTP/2 connection: receive windows, the send buffer, and the number of streams.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
const SEND_BUFFER: usize = 64 << 10;
const MAX_STREAMS: u32 = 1_000;

/// Time for a connection to end after the shutdown signal.
const GOODBYE: Duration = Duration::from_secs(5);

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
    slot: Arc<ConnectionSlot>,
) {
    // Otherwise the kernel delays small chunks of a stream; this fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    // Bytes beyond the client's receive window stay in the gateway, where they are bounded and
    // their progress is visible.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
    let config = worker.config();
    let limit = config.server.header_timeout.0;
    let memory = Arc::clone(&worker.state.memory);
    let stream =
        ClientSocket::new(stream, config.server.write_timeout.0, memory, config.upstream_buffer);
    drop(config);
    if let Some(tls) = worker.state.tls.load_full() {
        let accepted = timeout(limit, TlsAcceptor::from(tls).accept(stream)).await;
        let Ok(Ok(stream)) = accepted else { return };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let version = if is_http2 { Version::Http2 } else { Version::Http1 };
        return serve_http(worker, stream, version, Bytes::new(), peer, slot).await;
    }
    let (mut stream, mut stop) = (stream, slot.stop());
    let detected = tokio::select! {
        detected = timeout(limit, detect_version(&mut stream)) => detected,
        _ = stop.wait_for(|stopped| *stopped) => return,
    };
    if let Ok(Some((version, first))) = detected {
        serve_http(worker, stream, version, first, peer, slot).await;
    }
}

/// Detects the protocol from the first bytes and returns both; `None` if the client closes without
/// sending any. hyper-util's detection has no time limit, and hyper's own timers start after it.
async fn detect_version(stream: &mut ClientSocket<TcpStream>) -> Option<(Version, Bytes)> {
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
    version: Version,
    first: Bytes,
    peer: SocketAddr,
    slot: Arc<ConnectionSlot>,
) {
    let (worker, config) = (Rc::clone(worker), worker.config());
    let flags = ConnectionFlags::default();
    let format = (version == Version::Http1).then_some(config.error_format);
    let io = TokioIo::new(InspectedStream::new(stream, first, flags.clone(), format));
    let (stop, memory) = (slot.stop(), Arc::clone(&worker.state.memory));
    let peer = Rc::new(Peer::new(peer.ip(), config.spec.tls.is_some()));
    let service = service_fn(move |mut request: Request<Incoming>| {
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(Arc::clone(&slot));
        }
        let (worker, flags, request) = (Rc::clone(&worker), flags.clone(), Box::new(request));
        let peer = Rc::clone(&peer);
        async move {
            let response = dispatch::serve(worker, request, peer, &flags).await;
            flags.set_last_status(response.status());
            Ok::<_, Infallible>(response)
        }
    });
    match version {
        Version::Http1 => serve_http1(&config.server, io, service, stop).await,
        Version::Http2 => serve_http2(&config.server, io, service, &memory, stop).await,
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
        .max_buf_size(head.max(8_192))
        .writev(false);
    if server.headers != MAX_HEADERS {
        builder.max_headers(server.headers);
    }
    let mut connection = pin!(builder.serve_connection(io, service).with_upgrades());
    tokio::select! {
        biased;
        _ = connection.as_mut() => {}
        _ = stop.wait_for(|stopped| *stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Like [`serve_http1`]. A client that does not answer a PING in time is disconnected. So is one
/// that stops in the middle of a header block, where it may not answer a PING, and one without an
/// open stream for the same time.
async fn serve_http2<S, H>(
    server: &ServerSpec,
    io: TokioIo<InspectedStream<S>>,
    service: H,
    memory: &Arc<MemoryBudget>,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible>,
    H::Future: 'static,
{
    let service = service_fn(move |request| {
        let response = service.call(request);
        async move { Ok::<_, Infallible>(response.await?.map(WatchedBody::new)) }
    });
    let streams = Streams::new(server.write_timeout.0, memory);
    let mut builder = http2::Builder::new(streams.clone());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(server.header_timeout.0)
        .keep_alive_timeout(server.header_timeout.0)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(server.header_bytes.0).unwrap_or(u32::MAX));
    let mut connection = pin!(builder.serve_connection(io, service));
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stop.wait_for(|stopped| *stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
        () = streams.idle(server.header_timeout.0) => {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(GOODBYE, connection).await;
        }
    }
}
