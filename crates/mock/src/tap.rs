//! The connection as the log sees it: every read and write is time-stamped where it happens.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::clock::Clock;
use crate::exchange::Exchange;
use crate::note;

/// What is known of one connection, shared by its socket, its service and its response bodies.
#[derive(Debug)]
pub(crate) struct Tap {
    clock: Clock,
    connection: u64,
    /// Are the kernel's notes wanted?
    noted: bool,
    /// When the first bytes of the next request arrived, by the kernel's note; 0 before, and without one.
    arrived: Cell<u64>,
    /// When they were read; 0 before.
    first_read: Cell<u64>,
    last_read: Cell<u64>,
    last_write: Cell<u64>,
    /// How often everything that was handed over had been written.
    flushes: Cell<u64>,
    /// The body that waits for the next flush.
    waiting: RefCell<Option<Waker>>,
    /// Exchanges whose last bytes have been handed over, but not yet written.
    unwritten: RefCell<Vec<Exchange>>,
    reset: Cell<bool>,
}

impl Tap {
    pub(crate) fn new(clock: Clock, connection: u64, noted: bool) -> Self {
        Self {
            clock,
            connection,
            noted,
            arrived: Cell::new(0),
            first_read: Cell::new(0),
            last_read: Cell::new(0),
            last_write: Cell::new(0),
            flushes: Cell::new(0),
            waiting: RefCell::default(),
            unwritten: RefCell::default(),
            reset: Cell::new(false),
        }
    }

    /// The connection's number.
    pub(crate) const fn connection(&self) -> u64 {
        self.connection
    }

    /// When the first bytes of the present request were read. The bytes of a pipelined request may
    /// have come with those of the one before: then it is the time of that read.
    pub(crate) fn first_read(&self) -> u64 {
        match self.first_read.get() {
            0 => self.last_read.get(),
            first => first,
        }
    }

    /// When the first bytes of the present request arrived, or were read where the kernel did not note it.
    pub(crate) fn arrived(&self) -> u64 {
        match self.arrived.get() {
            0 => self.first_read(),
            arrived => arrived,
        }
    }

    /// When bytes were last read.
    pub(crate) const fn last_read(&self) -> u64 {
        self.last_read.get()
    }

    /// When the last `write` returned.
    pub(crate) const fn last_write(&self) -> u64 {
        self.last_write.get()
    }

    /// The present request is complete: what is read from now on belongs to the next.
    pub(crate) fn end_request(&self) {
        self.first_read.set(0);
        self.arrived.set(0);
    }

    /// Marks the bytes that are handed over now, for [`Tap::poll_written`].
    pub(crate) const fn mark(&self) -> u64 {
        self.flushes.get()
    }

    /// Ready when everything up to the mark has been written.
    pub(crate) fn poll_written(&self, cx: &Context<'_>, mark: u64) -> Poll<()> {
        if self.flushes.get() > mark {
            return Poll::Ready(());
        }
        *self.waiting.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The exchange is complete as soon as its last bytes, handed over now, have been written.
    pub(crate) fn complete_when_written(&self, exchange: Exchange) {
        self.unwritten.borrow_mut().push(exchange);
    }

    /// The connection shall end with a reset.
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

    /// hyper flushes when its buffers are empty: all that was handed over has been written.
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

/// A socket that tells its tap.
#[derive(Debug)]
pub(crate) struct Tapped {
    io: TokioIo<TcpStream>,
    tap: Rc<Tap>,
}

impl Tapped {
    pub(crate) fn new(stream: TcpStream, tap: Rc<Tap>) -> Self {
        Self { io: TokioIo::new(stream), tap }
    }

    fn stamp_write(&self, result: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(_)) = result {
            self.tap.last_write.set(self.tap.clock.now());
        }
    }
}

impl Read for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // Before the read takes the bytes away; once for each request.
        let noted = self.tap.noted && self.tap.first_read.get() == 0;
        let arrived = noted.then(|| note::arrival(self.io.inner(), self.tap.clock)).flatten();
        let result = Pin::new(&mut self.io).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = result {
            self.tap.stamp_read(arrived);
        }
        result
    }
}

impl Write for Tapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.stamp_write(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.stamp_write(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.io).poll_flush(cx);
        if let Poll::Ready(Ok(())) = result {
            self.tap.flushed();
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        if self.tap.reset.get() {
            // Without it the connection closes in the ordinary way, which the client sees as well.
            let _ = self.io.inner().set_zero_linger();
        }
    }
}
