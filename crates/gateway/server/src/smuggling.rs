//! Inspection of HTTP/1.1 connections, against request smuggling.
//!
//! A head with two lengths: hyper removes `content-length` where there is also `transfer-encoding`,
//! so no upstream is confused. But a client that sends both is malicious or broken, and is refused
//! (RFC 9112, 6.3). hyper does not report it, so the bytes are inspected as they arrive.
//!
//! Malformed heads: hyper answers them itself, without a body. Such a response is replaced by one
//! in the format of all other errors.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use hyper::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error_response::{ErrorFormat, ErrorResponse};

/// Length of `transfer-encoding:`, the longer of the two names.
const MAX_NAME_BYTES: usize = 18;

/// Flags shared by the byte-stream inspector and the request handler of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionFlags(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    /// Whether a head had two lengths.
    two_lengths: AtomicBool,
    /// The status of the last response of a handler.
    last_status: AtomicU16,
}

impl ConnectionFlags {
    /// Whether a head had two lengths; resets the flag.
    pub(crate) fn take_two_lengths(&self) -> bool {
        self.0.two_lengths.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn set_last_status(&self, status: StatusCode) {
        self.0.last_status.store(status.as_u16(), Ordering::Relaxed);
    }
}

/// A connection whose incoming lines are inspected. The first bytes were read before and are
/// replayed. Bodies are inspected like heads: a chunked body that contains both header lines in
/// sequence, such as a recorded request, is refused by mistake.
#[derive(Debug)]
pub(crate) struct InspectedStream<S> {
    stream: S,
    first: Bytes,
    lines: LineScanner,
    flags: ConnectionFlags,
    /// Format of error responses; `None` for HTTP/2, which has no lines to inspect.
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
        let lines = LineScanner::default();
        Self { stream, first, lines, flags, format, replacement: Bytes::new() }
    }

    fn inspect(&mut self, bytes: &[u8]) {
        if self.format.is_some() && self.lines.feed(bytes) {
            self.flags.0.two_lengths.store(true, Ordering::Relaxed);
        }
    }

    /// The replacement for hyper's own error response; `None` for any other bytes. An empty
    /// response with such a status may also be an upstream's: then it is the last one that a
    /// handler returned.
    fn replace(&self, bytes: &[u8]) -> Option<Bytes> {
        let format = self.format?;
        let status = bytes.strip_prefix(b"HTTP/1.1 4").and_then(|rest| rest.get(..2));
        let status = 400 + std::str::from_utf8(status?).ok()?.parse::<u16>().ok()?;
        let is_hypers = self.flags.0.last_status.load(Ordering::Relaxed) != status
            && memchr::memmem::find(bytes, b"content-length: 0\r\n").is_some();
        let error = is_hypers.then(|| ErrorResponse::for_malformed_head(status)).flatten();
        error.map(|error| error.to_http1_bytes(format))
    }
}

/// Scans the lines since the last empty one for the two length headers.
#[derive(Debug, Default)]
struct LineScanner {
    /// The beginning of the current line.
    start: [u8; MAX_NAME_BYTES],
    length: usize,
    has_transfer_encoding: bool,
    has_content_length: bool,
}

impl LineScanner {
    /// Takes the next bytes; returns whether a block with both headers ends its second one in them.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        let mut both = false;
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.keep(&rest[..end]);
            both |= self.end_line();
            rest = &rest[end + 1..];
        }
        self.keep(rest);
        both
    }

    fn keep(&mut self, part: &[u8]) {
        let taken = part.len().min(MAX_NAME_BYTES - self.length);
        self.start[self.length..self.length + taken].copy_from_slice(&part[..taken]);
        self.length += taken;
    }

    fn end_line(&mut self) -> bool {
        let line = &self.start[..self.length];
        let is = |name: &[u8]| {
            line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        match line {
            [] | [b'\r'] => {
                (self.has_transfer_encoding, self.has_content_length) = (false, false);
            }
            _ if is(b"transfer-encoding:") => self.has_transfer_encoding = true,
            _ if is(b"content-length:") => self.has_content_length = true,
            _ => {}
        }
        self.length = 0;
        self.has_transfer_encoding && self.has_content_length
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

/// Whether a path has `.` or `..` segments, also percent-encoded or after a backslash. Such a path
/// matches one route here and another one at an upstream that resolves it.
pub(crate) fn has_dot_segments(path: &str) -> bool {
    if !path.contains("/.") && !path.contains(['%', '\\']) {
        return false;
    }
    let plain =
        path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    plain.split(['/', '\\']).any(|segment| segment == "." || segment == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lengths_in_one_head_are_found_however_it_is_split() {
        for (text, both) in [
            ("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", true),
            (
                "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nhost: x\r\ncontent-length:3\r\n\r\n",
                true,
            ),
            ("POST / HTTP/1.1\ncontent-length: 3\nTRANSFER-ENCODING: chunked\n\n", true),
            (
                "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcPOST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
                false,
            ),
            ("POST / HTTP/1.1\r\nx-content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n", false),
            ("POST / HTTP/1.1\r\nx: content-length: 3 transfer-encoding: chunked\r\n\r\n", false),
        ] {
            for piece in [1, 2, 7, text.len()] {
                let mut lines = LineScanner::default();
                let chunks = text.as_bytes().chunks(piece);
                let found = chunks.fold(false, |found, part| lines.feed(part) | found);
                assert_eq!(found, both, "{piece}: {text:?}");
            }
        }
    }

    #[test]
    fn dot_segments_are_found() {
        for (path, found) in [
            ("/smoke/../admin", true),
            ("/smoke/%2e%2E/admin", true),
            ("/smoke/.%2e", true),
            ("/smoke/..%2fadmin", true),
            ("/smoke/..\\admin", true),
            ("/smoke/./x", true),
            ("/smoke/...", false),
            ("/smoke/.hidden/a..b", false),
            ("/v1/50%25/x", false),
            ("/", false),
        ] {
            assert_eq!(has_dot_segments(path), found, "{path}");
        }
    }
}
