//! A connection to an upstream, used by one exchange at a time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, spawn_local};

use super::endpoint::Endpoint;
use crate::http::request_body::RequestBody;

/// A connection that serves one request at a time. A separate task reads and writes its socket;
/// dropping the connection closes it at any point.
#[derive(Debug)]
pub(crate) struct UpstreamConn {
    sender: http1::SendRequest<RequestBody>,
    backlog: Backlog,
    task: AbortHandle,
}

/// A response whose body is still on the connection.
pub(crate) type Received = (Response<Incoming>, UpstreamConn);

/// Why a request got no response.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    /// The connection could not be opened.
    Connect,
    /// The connection broke before the head of a response was complete.
    Broken(Broken),
}

/// A connection that broke.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) error: hyper::Error,
    /// The request, if nothing of it was sent.
    pub(crate) unsent: Option<Box<Request<RequestBody>>>,
    /// Whether the connection was used before.
    pub(crate) reused: bool,
}

/// Whether written bytes are waiting for the server.
#[derive(Clone, Debug, Default)]
struct Backlog(Arc<AtomicBool>);

impl UpstreamConn {
    /// Opens a connection.
    pub(super) async fn open(endpoint: &Endpoint) -> Result<Self, UpstreamError> {
        let stream = TcpStream::connect(&*endpoint.address).await;
        let stream = stream.map_err(|_| UpstreamError::Connect)?;
        // Small writes must not be delayed; this fails on closed sockets only.
        let _ = stream.set_nodelay(true);
        let backlog = Backlog::default();
        let stream = WatchedStream { stream, backlog: backlog.clone() };
        let (sender, connection) = http1::Builder::new()
            .writev(false)
            .max_buf_size(endpoint.buffer)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Broken { error, unsent: None, reused: false })
            .map_err(UpstreamError::Broken)?;
        // Its errors are returned by the request.
        let task = spawn_local(async move {
            let _ = connection.with_upgrades().await;
        });
        Ok(Self { sender, backlog, task: task.abort_handle() })
    }

    /// Whether the last exchange is complete in both directions: the response was read, and the
    /// request was written and taken by the kernel.
    pub(super) fn is_free(&self) -> bool {
        self.sender.is_ready() && !self.backlog.0.load(Ordering::Relaxed)
    }

    /// Sends a request, and waits for the head of its response.
    pub(super) async fn send(
        mut self,
        request: Box<Request<RequestBody>>,
    ) -> Result<Received, UpstreamError> {
        match self.sender.try_send_request(*request).await {
            Ok(response) => Ok((response, self)),
            Err(mut error) => {
                let unsent = error.take_message().map(Box::new);
                let error = error.into_error();
                Err(UpstreamError::Broken(Broken { error, unsent, reused: false }))
            }
        }
    }
}

impl Drop for UpstreamConn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A socket that records whether the kernel took all written bytes.
#[derive(Debug)]
struct WatchedStream {
    stream: TcpStream,
    backlog: Backlog,
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        let all = matches!(&written, Poll::Ready(Ok(count)) if *count == bytes.len());
        this.backlog.0.store(!all, Ordering::Relaxed);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
