//! Inspects the byte stream of a client's connection.
//!
//! Heads: hyper silently removes or corrects some faults, which are found here so that the request
//! is refused, see [`WireInspector`].
//!
//! Malformed heads: hyper answers them itself, without a body. This response is replaced by one in
//! the common error format.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use hyper::StatusCode;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::normal_form::{WireFault, WireInspector};

/// Flags shared by the byte-stream inspector and the request handler of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionFlags(Arc<Mutex<Flags>>);

#[derive(Debug, Default)]
struct Flags {
    /// The first head with a fault, counted from 1; all later ones count as faulty.
    first_fault: Option<(u64, WireFault)>,
    /// Heads that reached a handler.
    served: u64,
    /// The status of the last response of a handler.
    last_status: u16,
}

impl ConnectionFlags {
    /// The fault of the next head, if it has one. Handlers get heads in the order of their arrival.
    pub(crate) fn next_head(&self) -> Option<WireFault> {
        let mut flags = self.0.lock();
        flags.served += 1;
        let (number, fault) = flags.first_fault?;
        (flags.served >= number).then_some(fault)
    }

    pub(crate) fn set_last_status(&self, status: StatusCode) {
        self.0.lock().last_status = status.as_u16();
    }
}

/// A connection whose incoming heads are inspected. The first bytes were read earlier and are
/// replayed.
#[derive(Debug)]
pub(crate) struct InspectedStream<S> {
    stream: S,
    first: Bytes,
    inspector: WireInspector,
    flags: ConnectionFlags,
    /// Format of error responses; `None` for HTTP/2, which needs no inspection.
    format: Option<ErrorFormat>,
    /// The rest of the response that replaces hyper's own.
    replacement: Bytes,
}

impl<S> InspectedStream<S> {
    pub(crate) fn new(
        stream: S,
        first: Bytes,
        flags: ConnectionFlags,
        format: Option<ErrorFormat>,
    ) -> Self {
        let inspector = WireInspector::default();
        Self { stream, first, inspector, flags, format, replacement: Bytes::new() }
    }

    fn inspect(&mut self, bytes: &[u8]) {
        if self.format.is_none() {
            return;
        }
        self.inspector.feed(bytes);
        if let Some(fault) = self.inspector.first_fault() {
            self.flags.0.lock().first_fault = Some(fault);
        }
    }

    /// The replacement for hyper's own error response; `None` for any other bytes. An upstream's
    /// response may also be empty with such a status, but then a handler returned it last.
    fn replace(&self, bytes: &[u8]) -> Option<Bytes> {
        let format = self.format?;
        let status = bytes.strip_prefix(b"HTTP/1.1 4").and_then(|rest| rest.get(..2));
        let status = 400 + std::str::from_utf8(status?).ok()?.parse::<u16>().ok()?;
        let is_hypers = self.flags.0.lock().last_status != status
            && memchr::memmem::find(bytes, b"content-length: 0\r\n").is_some();
        let error = is_hypers.then(|| ErrorResponse::for_malformed_head(status)).flatten();
        error.map(|error| error.to_http1_bytes(format))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InspectedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            let part = this.first.split_to(this.first.len().min(buffer.remaining()));
            this.inspect(&part);
            buffer.put_slice(&part);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.inspect(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InspectedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.replacement.is_empty() {
            match this.replace(bytes) {
                None => return Pin::new(&mut this.stream).poll_write(context, bytes),
                Some(replacement) => this.replacement = replacement,
            }
        }
        while !this.replacement.is_empty() {
            match ready!(Pin::new(&mut this.stream).poll_write(context, &this.replacement))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => this.replacement.advance(written),
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
