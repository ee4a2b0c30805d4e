//! Two lengths in one head. hyper takes `content-length` away where `transfer-encoding` stands beside it, so that no
//! upstream can be confused; but who sends both is up to no good or broken, and is refused (RFC 9112, 6.3).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// As long as the longer of the two names and its colon.
const LONGEST: usize = 18;

/// Was there a head with both lengths on this connection?
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubt(Arc<AtomicBool>);

impl Doubt {
    /// Tells, and forgets it.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// A connection whose lines are watched on their way in. Lines of bodies are looked at like those of heads: a body with
/// both lines one after the other, as in a recorded exchange, makes a chunked request suspicious that is not.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    lines: Lines,
    doubt: Doubt,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, doubt: Doubt) -> Self {
        Self { stream, lines: Lines::default(), doubt }
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
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        if this.lines.feed(buffer.filled().get(before..).unwrap_or_default()) {
            this.doubt.0.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
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
