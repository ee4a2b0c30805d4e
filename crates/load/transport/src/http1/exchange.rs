//! Exchanges over the socket of an HTTP/1.1 connection, one after another.

use std::cell::RefCell;
use std::mem;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use plimsoll_measure::{Clock, Moment};

use super::OutgoingRequest;
use super::response_parser::{Progress, ResponseParser, ResponsePart};
use crate::buffers::{KeptRead, ReadBuffers};
use crate::failure::Failure;
use crate::message::{Request, ResponseHandler};
use crate::rx_timestamp::{RxClock, RxTime};
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

    /// Removes the request from the queue, and notifies the handler if it was sent.
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

// An HTTP/1.1 exchange without I/O: the unsent part of the request, and the interpretation of the
// response as its bytes arrive. The owner of the socket calls it, so it is tested without a
// network and in virtual time.

/// The exchanges of one connection, one after another.
///
/// After [`ExchangeState::start`], the caller sends the rest of [`ExchangeState::outgoing`] and
/// reports it to [`ExchangeState::sent`], and passes on its reads, in any order, until the
/// [end](ExchangeState::end).
#[derive(Debug, Default)]
pub struct ExchangeState {
    parser: ResponseParser,
    outgoing: OutgoingRequest,
    /// Whether the connection can be used for another request, or why the exchange failed.
    end: Option<Result<bool, Failure>>,
}

impl ExchangeState {
    /// Begins the exchange of a request.
    pub fn start(&mut self, request: Request<'_>) {
        self.parser.start(request.head.is_head());
        self.outgoing = OutgoingRequest::new(request.encoded);
        self.end = None;
    }

    /// The unsent part of the request.
    pub const fn outgoing(&mut self) -> &mut OutgoingRequest {
        &mut self.outgoing
    }

    /// Whether the request has been sent.
    pub const fn is_sent(&self) -> bool {
        self.outgoing.is_done()
    }

    /// Records that the last byte of the request was sent at this moment.
    pub fn sent(&mut self, at: Moment, handler: &mut impl ResponseHandler) {
        handler.sent(at, self.outgoing.take());
    }

    /// Handles bytes of the response. Bytes after its end belong to no request, so that the
    /// connection must not be reused.
    pub fn received(&mut self, bytes: &[u8], rx_time: RxTime, handler: &mut impl ResponseHandler) {
        handler.received(bytes.len(), rx_time);
        if let Some(end) = &mut self.end {
            *end = end.clone().map(|_| false);
            return;
        }
        let mut flow = ControlFlow::Continue(());
        let progress = self.parser.feed(bytes, &mut |part| match part {
            ResponsePart::Head(head) => handler.head(&head),
            ResponsePart::Body(body) if flow == ControlFlow::Continue(()) => {
                flow = handler.body(body, rx_time.at);
            }
            ResponsePart::Body(_) => {}
        });
        self.end = match progress {
            // The handler does not need the rest.
            _ if flow == ControlFlow::Break(()) => Some(Ok(false)),
            Ok(Progress::Partial) => None,
            Ok(Progress::Complete { reusable }) => Some(Ok(reusable)),
            Err(failure) => Some(Err(failure)),
        };
    }

    /// Handles the target closing the connection.
    pub fn closed(&mut self) {
        self.end = Some(match self.end.take() {
            Some(end) => end.map(|_| false),
            None => self.parser.close().map(|_| false),
        });
    }

    /// Whether the exchange has ended, so that further reads would take unrelated data.
    pub const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The end of the exchange: whether the connection can be used for another request, or why the
    /// exchange failed. After a failure the connection must be closed.
    pub fn end(&mut self) -> Option<Result<bool, Failure>> {
        let sent = self.is_sent();
        self.end.take().map(|end| end.map(|reusable| reusable && sent))
    }
}

#[cfg(test)]
mod tests;
