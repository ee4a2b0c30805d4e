//! The socket of a client, with a write timeout.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::base::memory::{MemoryBudget, MemoryReservation, SHORT_PATIENCE};

/// A socket whose peer must read: at least one byte within the limit, or within a second while
/// memory is short. Otherwise writing fails, which closes the connection.
#[derive(Debug)]
pub(crate) struct ClientSocket<S> {
    stream: S,
    limit: Duration,
    /// Bytes that may wait after the current write.
    behind: usize,
    memory: Arc<MemoryBudget>,
    blocked: Option<Box<Blocked>>,
}

/// A write that is blocked by the peer.
#[derive(Debug)]
struct Blocked {
    since: Instant,
    timer: Pin<Box<Sleep>>,
    held: MemoryReservation,
}

impl<S> ClientSocket<S> {
    /// `behind` is the number of bytes that the gateway may buffer for this client, beside the
    /// current write.
    pub(crate) fn new(
        stream: S,
        limit: Duration,
        memory: Arc<MemoryBudget>,
        behind: usize,
    ) -> Self {
        Self { stream, limit, behind, memory, blocked: None }
    }

    /// Waits for the peer within the limit. The blocked bytes are in a buffer of up to twice their
    /// size.
    fn poll_blocked(&mut self, context: &mut Context<'_>, bytes: usize) -> Poll<io::Error> {
        let memory = bytes.saturating_mul(2).saturating_add(self.behind);
        let step = self.limit.min(SHORT_PATIENCE);
        let budget = &self.memory;
        let blocked = match &mut self.blocked {
            Some(blocked) => blocked,
            none => {
                let Some(held) = budget.hold(memory) else {
                    return Poll::Ready(io::ErrorKind::OutOfMemory.into());
                };
                let (since, timer) = (Instant::now(), Box::pin(sleep(step)));
                none.insert(Box::new(Blocked { since, timer, held }))
            }
        };
        if !blocked.held.resize(memory) {
            return Poll::Ready(io::ErrorKind::OutOfMemory.into());
        }
        loop {
            ready!(blocked.timer.as_mut().poll(context));
            if blocked.since.elapsed() >= self.limit || self.memory.is_short() {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            blocked.timer.as_mut().reset(Instant::now() + step);
        }
    }

    fn watch(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        bytes: usize,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            return self.poll_blocked(context, bytes).map(Err);
        }
        self.blocked = None;
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientSocket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.watch(context, written, bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.watch(context, written, slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
