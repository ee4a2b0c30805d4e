//! A connection with several simultaneous exchanges, and the slots on it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_measure::{Clock, ErrorClass};
use tokio::task::spawn_local;

use super::ConnectionError;
use super::connection_state::{ConnectionHandle, StreamInbox};
use crate::buffers::ReadBuffers;
use crate::failure::Failure;
use crate::rx_timestamp::RxClock;
use crate::socket::{ReadResult, Socket};

/// A connection with several simultaneous exchanges. It is closed when its last owner drops it.
#[derive(Debug)]
pub(crate) struct SharedConnection {
    handle: Rc<ConnectionHandle>,
    slots_in_use: Cell<u32>,
    max_slots: u32,
    used: Cell<bool>,
}

impl SharedConnection {
    /// Starts the connection's driver on the current worker. The client sends first, so requests
    /// can be queued before anything arrives from the target.
    pub(crate) fn open<C: Clock + 'static>(
        socket: Socket,
        rx_clock: &Rc<RxClock<C>>,
        buffers: &Rc<RefCell<ReadBuffers>>,
        max_slots: u32,
    ) -> Rc<Self> {
        let handle = Rc::new(ConnectionHandle::default());
        let (rx_clock, buffers) = (Rc::clone(rx_clock), Rc::clone(buffers));
        spawn_local(Driver::new(Rc::clone(&handle), socket, rx_clock, buffers).run());
        Rc::new(Self { handle, slots_in_use: Cell::new(0), max_slots, used: Cell::new(false) })
    }

    /// Takes a slot for one exchange, if one is free.
    pub(crate) fn take_slot(self: &Rc<Self>) -> Option<StreamSlot> {
        if self.is_closed() || self.slots_in_use.get() >= self.allowed() {
            return None;
        }
        self.slots_in_use.set(self.slots_in_use.get() + 1);
        Some(StreamSlot { connection: Rc::clone(self), inbox: StreamInbox::default() })
    }

    /// Number of simultaneous exchanges: limited by the options and by the target.
    fn allowed(&self) -> u32 {
        self.limit().map_or(self.max_slots, |limit| limit.clamp(1, self.max_slots))
    }

    /// Number of streams that the target allows; `None` before its first settings.
    pub(crate) fn limit(&self) -> Option<u32> {
        self.handle.state.borrow().session.stream_limit()
    }

    /// Whether it accepts no further request.
    pub(crate) fn is_closed(&self) -> bool {
        self.handle.closed.get()
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        let mut state = self.handle.state.borrow_mut();
        state.abandoned = true;
        state.request_flush();
    }
}

/// A slot for one exchange on a shared connection. It is released when dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    connection: Rc<SharedConnection>,
    /// Buffers of the exchange that uses it.
    inbox: StreamInbox,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let in_use = &self.connection.slots_in_use;
        in_use.set(in_use.get().saturating_sub(1));
    }
}

impl StreamSlot {
    /// Whether the connection has been used for a request before.
    pub(crate) fn was_used(&self) -> bool {
        self.connection.used.get()
    }

    /// The parts needed by an exchange.
    pub(super) fn parts(&mut self) -> (&ConnectionHandle, &mut StreamInbox) {
        self.connection.used.set(true);
        (&self.connection.handle, &mut self.inbox)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}

// The task that owns a connection's socket.
//
// It is woken by the socket, or by an exchange that has queued frames. In the second case it runs
// after the tasks that were already ready, so that their frames are written together.

pub(super) struct Driver<C> {
    handle: Rc<ConnectionHandle>,
    socket: Socket,
    rx_clock: Rc<RxClock<C>>,
    /// Shared with the other connections of the worker.
    buffers: Rc<RefCell<ReadBuffers>>,
    /// Whether the kernel accepted less than was queued.
    blocked: bool,
    /// The reason why writing has become impossible. Data that the target sent earlier is still
    /// read.
    write_failure: Option<Failure>,
}

impl<C: Clock> Driver<C> {
    pub(super) const fn new(
        handle: Rc<ConnectionHandle>,
        socket: Socket,
        rx_clock: Rc<RxClock<C>>,
        buffers: Rc<RefCell<ReadBuffers>>,
    ) -> Self {
        Self { handle, socket, rx_clock, buffers, blocked: true, write_failure: None }
    }

    /// Reads and writes until the connection ends, and passes the reason to all exchanges.
    pub(super) async fn run(mut self) {
        let failure = poll_fn(|context| self.poll(context)).await;
        self.handle.closed.set(true);
        self.handle.state.borrow_mut().end(&failure);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        match self.read_and_write(context) {
            Ok(()) => Poll::Pending,
            Err(failure) => Poll::Ready(failure),
        }
    }

    fn read_and_write(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let flush_requested = self.handle.state.borrow_mut().register_driver(context);
        if self.handle.state.borrow().abandoned {
            self.handle.state.borrow_mut().session.go_away();
            self.flush();
            return Err(Failure::new(ErrorClass::ClosedEarly, "the connection is no longer used"));
        }
        if flush_requested && !self.blocked {
            self.flush();
        }
        while self.socket.poll_readable(context).map_err(io_failure)?.is_ready() {
            if self.read()? == ReadResult::WouldBlock {
                continue;
            }
            let mut state = self.handle.state.borrow_mut();
            if let Some(code) = state.session.closed_by_target() {
                let detail = format!("the target closed the connection: {code}");
                return Err(Failure::new(ErrorClass::ClosedEarly, detail));
            }
            if !state.session.output().is_empty() {
                state.request_flush();
            }
        }
        while self.blocked && self.socket.poll_writable(context).map_err(io_failure)?.is_ready() {
            self.flush();
        }
        Ok(())
    }

    /// Reads once.
    fn read(&mut self) -> Result<ReadResult, Failure> {
        let Self { handle, socket, rx_clock, buffers, .. } = self;
        let mut fed = Ok(());
        let read = socket.receive(rx_clock, &mut buffers.borrow_mut(), &mut |bytes, rx_time| {
            if fed.is_ok() {
                fed = handle.state.borrow_mut().feed(bytes, rx_time);
            }
        })?;
        handle.closed.set(!handle.state.borrow().session.accepts_streams());
        if let Err(ConnectionError { code, detail }) = fed {
            // A GOAWAY is queued. It does not matter whether it arrives.
            self.flush();
            let detail = format!("HTTP/2, {code}: {detail}");
            return Err(Failure::new(ErrorClass::MalformedHead, detail));
        }
        if read == ReadResult::Closed {
            let closed = "the target closed the connection";
            let failure = self.write_failure.take();
            return Err(failure.unwrap_or_else(|| Failure::new(ErrorClass::ClosedEarly, closed)));
        }
        Ok(read)
    }

    /// Passes queued bytes to the kernel.
    fn flush(&mut self) {
        if self.write_failure.is_some() {
            return;
        }
        let mut state = self.handle.state.borrow_mut();
        match self.socket.write(state.session.output()) {
            Ok(written) => {
                state.session.wrote(written.bytes);
                self.blocked = !written.complete;
                if written.flushed {
                    state.record_written(self.rx_clock.clock().now());
                }
            }
            Err(error) => {
                self.blocked = false;
                self.write_failure = Some(io_failure(error));
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
fn io_failure(error: io::Error) -> Failure {
    let failure = Failure::on_connection(&error);
    if failure.class == ErrorClass::LocalIo {
        return Failure::new(ErrorClass::ClosedEarly, failure.detail);
    }
    failure
}
