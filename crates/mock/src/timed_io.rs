//! Socket I/O with a timestamp on each read and write.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::clock::Clock;
use crate::exchange::{Exchange, Reception};
use crate::overrides::Accepted;
use crate::rx_timestamp;

/// The times of one connection, shared by its socket, its service and its response bodies.
#[derive(Debug)]
pub(crate) struct ConnectionTimes {
    clock: Clock,
    pub(crate) connection: u64,
    /// Whether the kernel's receive timestamps are used.
    uses_rx_timestamps: bool,
    /// When the first bytes of the current request arrived, by the kernel's timestamp; 0 if
    /// unknown.
    arrived: Cell<u64>,
    /// When they were first read; 0 before.
    first_read: Cell<u64>,
    last_read: Cell<u64>,
    last_write: Cell<u64>,
    /// Number of complete flushes.
    flushes: Cell<u64>,
    /// The body that waits for the next flush.
    waiting: RefCell<Option<Waker>>,
    /// Exchanges whose last bytes were passed to hyper, but not yet written.
    unwritten: RefCell<Vec<Exchange>>,
    reset: Cell<bool>,
    /// An accepted handshake, after which frames follow.
    switch: RefCell<Option<Accepted>>,
}

impl ConnectionTimes {
    pub(crate) fn new(clock: Clock, connection: u64, uses_rx_timestamps: bool) -> Self {
        Self {
            clock,
            connection,
            uses_rx_timestamps,
            arrived: Cell::new(0),
            first_read: Cell::new(0),
            last_read: Cell::new(0),
            last_write: Cell::new(0),
            flushes: Cell::new(0),
            waiting: RefCell::default(),
            unwritten: RefCell::default(),
            reset: Cell::new(false),
            switch: RefCell::default(),
        }
    }

    /// Marks the response in progress as the switch to a WebSocket.
    pub(crate) fn switch_to(&self, accepted: Accepted) {
        *self.switch.borrow_mut() = Some(accepted);
    }

    /// The handshake, if the connection was switched to a WebSocket.
    pub(crate) fn take_switch(&self) -> Option<Accepted> {
        self.switch.borrow_mut().take()
    }

    /// The reception times of the current request. A pipelined request that arrived in the same
    /// read as the previous one has the time of that read.
    pub(crate) fn reception(&self) -> Reception {
        let last_read = self.last_read.get();
        let first_read = known_or(self.first_read.get(), last_read);
        let arrived = known_or(self.arrived.get(), first_read);
        Reception { connection: self.connection, arrived, first_read, last_read }
    }

    /// Ends the current request, so that later reads belong to the next. Returns when its last
    /// bytes were read.
    pub(crate) fn end_request(&self) -> u64 {
        self.first_read.set(0);
        self.arrived.set(0);
        self.last_read.get()
    }

    /// When the last `write` returned.
    pub(crate) const fn last_write(&self) -> u64 {
        self.last_write.get()
    }

    /// The flush mark of the bytes that are passed on now; see [`ConnectionTimes::poll_written`].
    pub(crate) const fn flush_mark(&self) -> u64 {
        self.flushes.get()
    }

    /// Ready when hyper has flushed after the bytes at [`ConnectionTimes::flush_mark`] were passed
    /// on.
    pub(crate) fn poll_written(&self, cx: &Context<'_>, flush_mark: u64) -> Poll<()> {
        if self.flushes.get() > flush_mark {
            return Poll::Ready(());
        }
        *self.waiting.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Completes an exchange once its last bytes, which are passed on now, were written.
    pub(crate) fn complete_when_written(&self, exchange: Exchange) {
        self.unwritten.borrow_mut().push(exchange);
    }

    /// Makes the connection close with a TCP reset.
    pub(crate) fn reset_on_close(&self) {
        self.reset.set(true);
    }

    fn stamp_read(&self, arrived: Option<u64>) {
        let now = self.clock.now();
        self.last_read.set(now);
        if self.first_read.get() == 0 {
            self.first_read.set(now);
            self.arrived.set(arrived.unwrap_or(0));
        }
    }

    /// hyper flushes when its buffers are empty, so all earlier bytes were written.
    fn flushed(&self) {
        self.flushes.set(self.flushes.get() + 1);
        let at = self.last_write.get();
        self.unwritten.borrow_mut().drain(..).for_each(|exchange| exchange.complete(at));
        let waiting = self.waiting.borrow_mut().take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// A socket that stamps its reads and writes.
#[derive(Debug)]
pub(crate) struct TimedStream {
    io: TokioIo<TcpStream>,
    times: Rc<ConnectionTimes>,
}

impl TimedStream {
    pub(crate) fn new(stream: TcpStream, times: Rc<ConnectionTimes>) -> Self {
        Self { io: TokioIo::new(stream), times }
    }

    /// When the unread bytes arrived, if they start a request.
    fn arrival(&self) -> Option<u64> {
        let begins = self.times.uses_rx_timestamps && self.times.first_read.get() == 0;
        begins.then(|| rx_timestamp::peek(self.io.inner(), self.times.clock)).flatten()
    }
}

impl Read for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // Read first, because reading the bytes consumes the timestamp.
        let arrived = self.arrival();
        let result = Pin::new(&mut self.io).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = result {
            self.times.stamp_read(arrived);
        }
        result
    }
}

impl Write for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write(cx, bytes);
        if let Poll::Ready(Ok(_)) = result {
            self.times.last_write.set(self.times.clock.now());
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.io).poll_flush(cx);
        if let Poll::Ready(Ok(())) = result {
            self.times.flushed();
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl Drop for TimedStream {
    fn drop(&mut self) {
        if self.times.reset.get() {
            // If it fails, the connection closes regularly, which the client notices, too.
            let _ = self.io.inner().set_zero_linger();
        }
    }
}

/// A time, or the other one if it is unknown.
const fn known_or(time: u64, other: u64) -> u64 {
    if time == 0 { other } else { time }
}
