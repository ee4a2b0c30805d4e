//! What hyper does not tell of HTTP/1.1, seen on the connection itself.
//!
//! Two lengths in one head: hyper takes `content-length` away where `transfer-encoding` stands beside it, so that no
//! upstream can be confused; but who sends both is up to no good or broken, and is refused (RFC 9112, 6.3).
//!
//! Refusals of hyper's own, for heads that it cannot read: they have no body, and get the one that all others have.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use hyper::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::refusal::{Refusal, Voice};

/// As long as the longer of the two names and its colon.
const LONGEST: usize = 18;

/// What those who serve a connection and those who watch it tell each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubt(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    /// Was there a head with both lengths?
    both: AtomicBool,
    /// The status of the last answer that is not hyper's own.
    status: AtomicU16,
}

impl Doubt {
    /// Tells, and forgets it.
    pub(crate) fn take(&self) -> bool {
        self.0.both.swap(false, Ordering::Relaxed)
    }

    /// Remembers the status of an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        self.0.status.store(status.as_u16(), Ordering::Relaxed);
    }
}

/// A connection whose lines are watched on their way in, after the first bytes, which were read before. Lines of bodies are looked at like those of heads: a body with
/// both lines one after the other, as in a recorded exchange, makes a chunked request suspicious that is not.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    first: Bytes,
    lines: Lines,
    doubt: Doubt,
    /// The words of refusals; `None` for HTTP/2, which has no lines to be watched.
    voice: Option<Voice>,
    /// What is written in place of hyper's own refusal.
    instead: Bytes,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, first: Bytes, doubt: Doubt, voice: Option<Voice>) -> Self {
        Self { stream, first, lines: Lines::default(), doubt, voice, instead: Bytes::new() }
    }

    fn watch(&mut self, bytes: &[u8]) {
        if self.voice.is_some() && self.lines.feed(bytes) {
            self.doubt.0.both.store(true, Ordering::Relaxed);
        }
    }

    /// What should be written instead of hyper's own refusal. An empty answer of an upstream's with the same status is none:
    /// it was the last one that was served.
    fn better(&self, bytes: &[u8]) -> Option<Bytes> {
        let voice = self.voice?;
        let status = bytes.strip_prefix(b"HTTP/1.1 4").and_then(|rest| rest.get(..2));
        let status = 400 + std::str::from_utf8(status?).ok()?.parse::<u16>().ok()?;
        let is_own = self.doubt.0.status.load(Ordering::Relaxed) != status
            && memchr::memmem::find(bytes, b"content-length: 0\r\n").is_some();
        is_own.then(|| Refusal::of_malformed(status).map(|refusal| refusal.to_wire(voice)))?
    }
}

/// What the lines since the last empty one said.
#[derive(Debug, Default)]
struct Lines {
    /// The beginning of the current line.
    start: [u8; LONGEST],
    length: usize,
    chunked: bool,
    counted: bool,
}

impl Lines {
    /// Takes the next bytes; is there a block with both lengths in them?
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
        let taken = part.len().min(LONGEST - self.length);
        self.start[self.length..self.length + taken].copy_from_slice(&part[..taken]);
        self.length += taken;
    }

    fn end_line(&mut self) -> bool {
        let line = &self.start[..self.length];
        let is = |name: &[u8]| {
            line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        match line {
            [] | [b'\r'] => (self.chunked, self.counted) = (false, false),
            _ if is(b"transfer-encoding:") => self.chunked = true,
            _ if is(b"content-length:") => self.counted = true,
            _ => {}
        }
        self.length = 0;
        self.chunked && self.counted
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            let part = this.first.split_to(this.first.len().min(buffer.remaining()));
            this.watch(&part);
            buffer.put_slice(&part);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.watch(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.instead.is_empty() {
            match this.better(bytes) {
                None => return Pin::new(&mut this.stream).poll_write(context, bytes),
                Some(better) => this.instead = better,
            }
        }
        while !this.instead.is_empty() {
            match ready!(Pin::new(&mut this.stream).poll_write(context, &this.instead))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => this.instead.advance(written),
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

/// Does a path step out of where it begins: by `.` or `..`, also percent-encoded, or behind a backslash? Such paths match
/// one route here and another one at an upstream that resolves them.
pub(crate) fn wanders(path: &str) -> bool {
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
    fn both_lengths_in_one_head_are_seen_however_it_is_cut() {
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
                let mut lines = Lines::default();
                let seen =
                    text.as_bytes().chunks(piece).fold(false, |seen, part| lines.feed(part) | seen);
                assert_eq!(seen, both, "{piece}: {text:?}");
            }
        }
    }

    #[test]
    fn paths_that_step_out_are_found() {
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
            assert_eq!(wanders(path), found, "{path}");
        }
    }
}
