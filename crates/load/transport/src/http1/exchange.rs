//! Exchanges over the socket of an HTTP/1.1 connection, one after another.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use plimsoll_measure::Clock;

use super::exchange_state::ExchangeState;
use crate::buffers::{KeptRead, ReadBuffers};
use crate::failure::Failure;
use crate::message::{Request, ResponseHandler};
use crate::rx_timestamp::RxClock;
use crate::send_queue::{SendPlace, SendQueue};
use crate::socket::{ReadResult, Socket};

/// Maximum size of a read that is deferred to the task's next turn. Copying a larger one would cost
/// more than it saves.
const MOST_KEPT: usize = 4 * 1024;

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    socket: Socket,
    state: ExchangeState,
    used: bool,
    /// Number of requests left for this connection.
    lifetime: u32,
    /// Queue position for requests of a busy worker; `None` with TLS.
    place: Option<SendPlace>,
    /// Whether the current request may wait in the queue because no attempt was made to send it.
    may_wait: bool,
    /// Unhandled data of the response; no bytes if the target has closed.
    unhandled: Option<Box<KeptRead>>,
}

impl Http1Connection {
    /// Creates a connection that is closed after `lifetime` requests.
    pub(crate) fn new(socket: Socket, lifetime: u32, queue: Option<Rc<SendQueue>>) -> Self {
        let place = queue.zip(socket.without_tls().cloned());
        let place = place.map(|(queue, tcp)| SendPlace::new(queue, tcp));
        let state = ExchangeState::default();
        Self { socket, state, used: false, lifetime, place, may_wait: false, unhandled: None }
    }

    /// The socket of a connection without a current request.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    /// Whether it has been used for a request before.
    pub(crate) const fn was_used(&self) -> bool {
        self.used
    }

    /// Whether it is open and has no unexpected data.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.socket.is_silent()
    }

    /// Begins the exchange of a request.
    pub(crate) fn start(&mut self, request: Request<'_>) {
        self.used = true;
        self.lifetime = self.lifetime.saturating_sub(1);
        self.may_wait = request.may_wait;
        self.state.start(request);
    }

    /// Sends the request and reads its response, as
    /// [`Connection::exchange`](crate::Connection::exchange) describes.
    pub(crate) fn poll<C: Clock, H: ResponseHandler>(
        &mut self,
        context: &mut Context<'_>,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
    ) -> Poll<Result<bool, Failure>> {
        if mem::take(&mut self.may_wait) && self.hold(context.waker(), rx_clock.clock()) {
            // Data that arrive before the request is sent belong to no request of ours. The request
            // is then sent at once.
            ready!(self.socket.poll_ready(context, false))
                .map_err(|error| Failure::on_connection(&error))?;
        }
        let mut send_failure = self.settle(handler).err();
        if send_failure.is_none() && self.reads_first(rx_clock, buffers, handler)? {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            if send_failure.is_none() {
                send_failure = self.send(rx_clock.clock(), buffers, handler).err();
            }
            self.receive(rx_clock, buffers, handler)?;
            if let Some(end) = self.state.end() {
                return Poll::Ready(end.map(|reusable| reusable && self.lifetime > 0));
            }
            if let Some(failure) = send_failure {
                return Poll::Ready(Err(failure));
            }
            let ready = ready!(self.socket.poll_ready(context, !self.state.is_sent()));
            ready.map_err(|error| Failure::on_connection(&error))?;
        }
    }

    /// Moves the request to the worker's queue if the worker is busy.
    fn hold<C: Clock>(&mut self, waker: &Waker, clock: &C) -> bool {
        let Self { place, state, .. } = self;
        place.as_ref().is_some_and(|place| place.hold(state.outgoing(), waker, clock))
    }

    /// Takes the request back from the queue, and tells the handler if it was sent.
    pub(crate) fn settle<H: ResponseHandler>(&mut self, handler: &mut H) -> Result<(), Failure> {
        let Self { place: Some(place), state, .. } = self else { return Ok(()) };
        let tried = place.take_back(state.outgoing());
        let tried = tried.map_err(|error| Failure::on_connection(&error))?;
        if let Some(at) = tried.filter(|_| state.is_sent()) {
            state.sent(at, handler);
        }
        Ok(())
    }

    /// Writes as much of the request as the socket accepts.
    fn send<C: Clock, H: ResponseHandler>(
        &mut self,
        clock: &C,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
    ) -> Result<(), Failure> {
        if self.state.is_sent() {
            return Ok(());
        }
        let joined = &mut buffers.borrow_mut().small_request;
        let sent = self.socket.send(joined, self.state.outgoing());
        sent.map_err(|error| Failure::on_connection(&error))?;
        if self.state.is_sent() {
            self.state.sent(clock.now(), handler);
        }
        Ok(())
    }

    /// Whether a busy worker has read data to handle in the task's next turn, after other tasks
    /// have read too.
    fn reads_first<C: Clock, H: ResponseHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
    ) -> Result<bool, Failure> {
        let Self { socket, state, place, unhandled, .. } = self;
        if unhandled.is_some() || !place.as_ref().is_some_and(SendPlace::is_busy) {
            return Ok(false);
        }
        let buffers = &mut *buffers.borrow_mut();
        let (mut kept, mut is_kept) = (buffers.acquire_kept(), false);
        let read = socket.receive(rx_clock, buffers, &mut |bytes, rx_time| {
            is_kept = bytes.len() <= MOST_KEPT;
            if is_kept {
                kept.keep(bytes, rx_time);
            } else {
                state.received(bytes, rx_time, handler);
            }
        })?;
        if is_kept || read == ReadResult::Closed {
            *unhandled = Some(kept);
        } else {
            buffers.release_kept(kept);
        }
        Ok(unhandled.is_some())
    }

    /// Handles a deferred read.
    fn handle_kept<H: ResponseHandler>(&mut self, buffers: &mut ReadBuffers, handler: &mut H) {
        let Some(kept) = self.unhandled.take() else { return };
        if kept.bytes.is_empty() {
            self.state.closed();
        } else {
            self.state.received(&kept.bytes, kept.rx_time, handler);
        }
        buffers.release_kept(kept);
    }

    /// Reads until the exchange ends or the socket has no more data.
    fn receive<C: Clock, H: ResponseHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
    ) -> Result<(), Failure> {
        let mut buffers = buffers.borrow_mut();
        self.handle_kept(&mut buffers, handler);
        let Self { socket, state, .. } = self;
        while !state.has_ended() {
            let read = socket.receive(rx_clock, &mut buffers, &mut |bytes, rx_time| {
                state.received(bytes, rx_time, handler);
            })?;
            match read {
                ReadResult::Bytes => {}
                ReadResult::WouldBlock => break,
                ReadResult::Closed => state.closed(),
            }
        }
        Ok(())
    }
}
