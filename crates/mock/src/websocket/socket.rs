//! The socket of a WebSocket: frames in, bytes out.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read as _, ReadBuf, Write as _};

use super::frame::{Inbox, Incoming, Violation};
use crate::timed_io::TimedStream;

/// Bytes read at once.
const READ_SIZE: usize = 16 * 1024;

/// Why no more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The client disconnected.
    Gone,
    /// It broke the protocol.
    Violation(Violation),
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// An open socket.
#[derive(Debug)]
pub(super) struct Socket {
    io: TimedStream,
    inbox: Inbox,
    buffer: Vec<u8>,
}

impl Socket {
    /// `early` are bytes that arrived in one read with the handshake.
    pub(super) fn new(io: TimedStream, early: &[u8]) -> Self {
        let mut inbox = Inbox::default();
        inbox.push(early);
        Self { io, inbox, buffer: vec![0; READ_SIZE] }
    }

    /// Whether all received bytes were read.
    pub(super) fn is_between_messages(&self) -> bool {
        self.inbox.is_empty()
    }

    /// The next message or control frame.
    pub(super) fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Result<Incoming, Broken>> {
        loop {
            if let Some(incoming) = self.inbox.next().map_err(Broken::Violation)? {
                return Poll::Ready(Ok(incoming));
            }
            let mut buffer = ReadBuf::new(&mut self.buffer);
            ready!(Pin::new(&mut self.io).poll_read(cx, buffer.unfilled()))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(Broken::Gone));
            }
            self.inbox.push(buffer.filled());
        }
    }

    /// Writes all bytes.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut written = 0;
        while written < bytes.len() {
            let write =
                poll_fn(|cx| Pin::new(&mut self.io).poll_write(cx, &bytes[written..])).await?;
            if write == 0 {
                return Err(Broken::Gone);
            }
            written += write;
        }
        poll_fn(|cx| Pin::new(&mut self.io).poll_flush(cx)).await?;
        Ok(())
    }
}
