//! Exchanges over the socket of an HTTP/1.1 connection, one after another.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use plimsoll_measure::Clock;

use super::exchange_state::ExchangeState;
use super::known_head::KnownHead;
use crate::buffers::ReadBuffers;
use crate::failure::Failure;
use crate::message::{Request, ResponseHandler};
use crate::rx_timestamp::RxClock;
use crate::socket::{ReadResult, Socket};

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    socket: Socket,
    state: ExchangeState,
    used: bool,
    /// Requests that it can still carry.
    lifetime: u32,
}

impl Http1Connection {
    /// A connection that is closed after `lifetime` requests.
    pub(crate) fn new(socket: Socket, lifetime: u32, known: Rc<RefCell<KnownHead>>) -> Self {
        Self { socket, state: ExchangeState::knowing(known), used: false, lifetime }
    }

    /// The socket of a connection that carries no request.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    /// Whether it has carried a request before.
    pub(crate) const fn was_used(&self) -> bool {
        self.used
    }

    /// Whether it is open and holds no unexpected data.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.socket.is_silent()
    }

    /// Begins the exchange of a request.
    pub(crate) fn start(&mut self, request: Request<'_>) {
        self.used = true;
        self.lifetime = self.lifetime.saturating_sub(1);
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
        loop {
            let send_failure = self.send(rx_clock.clock(), buffers, handler).err();
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

    /// Writes what the socket takes of the request.
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

    /// Reads until the exchange ends or the socket has no more.
    fn receive<C: Clock, H: ResponseHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
    ) -> Result<(), Failure> {
        let mut buffers = buffers.borrow_mut();
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
