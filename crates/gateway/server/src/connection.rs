//! One connection of a client, from its first byte to its end.

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

use crate::body::{Body, Never};
use crate::framing::{Doubt, Watched};
use crate::service;
use crate::spec::ServerSpec;
use crate::worker::Worker;

/// What a client begins HTTP/2 with (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Room for the first bytes of a connection: a request without a body mostly fits.
const FIRST: usize = 1 << 10;

/// Bounds of one HTTP/2 connection: windows that do not throttle a stream, and streams enough.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
const STREAMS: u32 = 1_000;

/// Tasks of hyper's HTTP/2 stay on the worker.
#[derive(Clone, Copy, Debug)]
struct Here;

impl<F: Future<Output = ()> + 'static> Executor<F> for Here {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Serves one connection to its end, or until the gateway stops.
pub(crate) async fn attend(
    worker: &Rc<Worker>,
    stream: TcpStream,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
) {
    // Without it the kernel would hold back small pieces of a stream; it fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    let limit = worker.config().server.header_timeout.0;
    if let Some(tls) = &worker.shared().tls {
        let Ok(Ok(stream)) = timeout(limit, tls.accept(stream)).await else { return };
        let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let version = if two { Version::Two } else { Version::One };
        return talk(worker, stream, (version, Bytes::new()), peer, stop).await;
    }
    let mut stream = stream;
    let opened = tokio::select! {
        opened = timeout(limit, open(&mut stream)) => opened,
        _ = stop.wait_for(|stopped| *stopped) => return,
    };
    if let Ok(Some(opening)) = opened {
        talk(worker, stream, opening, peer, stop).await;
    }
}

/// What a client speaks by its first bytes, and these; `None` when it goes without a word. hyper-util tells them apart, too,
/// but waits for them without end, and hyper's own timers begin behind that.
async fn open(stream: &mut TcpStream) -> Option<(Version, Bytes)> {
    let mut first = BytesMut::with_capacity(FIRST);
    loop {
        let read = stream.read_buf(&mut first).await.ok()?;
        let known = first.len().min(PREFACE.len());
        if first[..known] != PREFACE[..known] {
            return Some((Version::One, first.freeze()));
        }
        if known == PREFACE.len() {
            return Some((Version::Two, first.freeze()));
        }
        if read == 0 {
            return None;
        }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    worker: &Rc<Worker>,
    stream: S,
    (version, first): (Version, Bytes),
    peer: SocketAddr,
    stop: watch::Receiver<bool>,
) {
    let (host, config) = (Rc::clone(worker), worker.config());
    let doubt = Doubt::default();
    let voice = (version == Version::One).then_some(config.voice);
    let io = TokioIo::new(Watched::new(stream, first, doubt.clone(), voice));
    let service = service_fn(move |request| {
        let (host, doubt) = (Rc::clone(&host), doubt.clone());
        async move {
            let answer = service::serve(host, request, peer, &doubt).await;
            doubt.answered(answer.status());
            Ok::<_, Never>(answer)
        }
    });
    match version {
        Version::One => one(&config.server, io, service, stop).await,
        Version::Two => two(&config.server, io, service, stop).await,
    }
}

/// Errors are the client's doing, or ours on purpose; what was under way is in the books.
async fn one<S, H>(
    server: &ServerSpec,
    io: TokioIo<Watched<S>>,
    service: H,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: HttpService<Incoming, ResBody = Body, Error = Never>,
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

/// As [`one`]. A client that leaves a PING unanswered is gone; so is one that stops in the middle of a block of headers, as
/// it may send no PING in between.
async fn two<S, H>(
    server: &ServerSpec,
    io: TokioIo<Watched<S>>,
    service: H,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: HttpService<Incoming, ResBody = Body, Error = Never>,
    H::Future: 'static,
{
    let mut builder = http2::Builder::new(Here);
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(server.header_timeout.0)
        .keep_alive_timeout(server.header_timeout.0)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS)
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
