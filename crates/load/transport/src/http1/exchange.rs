//! Exchanges over an HTTP/1.1 connection, one after another.

use std::cell::RefCell;
use std::ops::ControlFlow;

use plimsoll_measure::Clock;

use super::response_parser::{Progress, ResponseParser, ResponsePart};
use crate::buffers::ReadBuffers;
use crate::failure::Failure;
use crate::message::{Request, ResponseHandler};
use crate::rx_timestamp::{RxClock, RxTime};
use crate::socket::{OutgoingRequest, ReadResult, Socket};

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    socket: Socket,
    parser: ResponseParser,
    used: bool,
    /// Requests that it can still carry.
    lifetime: u32,
}

impl Http1Connection {
    /// A connection that is closed after `lifetime` requests.
    pub(crate) const fn new(socket: Socket, lifetime: u32) -> Self {
        Self { socket, parser: ResponseParser::new(), used: false, lifetime }
    }

    /// Whether it has carried a request before.
    pub(crate) const fn was_used(&self) -> bool {
        self.used
    }

    /// Whether it is open and holds no unexpected data.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.socket.is_silent()
    }

    /// Sends a request and reads its response, as
    /// [`Connection::exchange`](crate::Connection::exchange) describes.
    pub(crate) async fn exchange<C: Clock, H: ResponseHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        request: Request<'_>,
        handler: &mut H,
    ) -> Result<bool, Failure> {
        self.used = true;
        self.lifetime = self.lifetime.saturating_sub(1);
        self.parser.start(request.head.is_head());
        let mut outgoing = OutgoingRequest::new(request.encoded);
        loop {
            let send_failure = self.send(rx_clock.clock(), buffers, &mut outgoing, handler).err();
            if let Some(reusable) = self.receive(rx_clock, buffers, handler)? {
                return Ok(reusable && outgoing.is_done() && self.lifetime > 0);
            }
            if let Some(failure) = send_failure {
                return Err(failure);
            }
            let ready = self.socket.ready(!outgoing.is_done()).await;
            ready.map_err(|error| Failure::on_connection(&error))?;
        }
    }

    fn send<C: Clock, H: ResponseHandler>(
        &mut self,
        clock: &C,
        buffers: &RefCell<ReadBuffers>,
        outgoing: &mut OutgoingRequest,
        handler: &mut H,
    ) -> Result<(), Failure> {
        if outgoing.is_done() {
            return Ok(());
        }
        let sent = self.socket.send(&mut buffers.borrow_mut().small_request, outgoing);
        sent.map_err(|error| Failure::on_connection(&error))?;
        if outgoing.is_done() {
            handler.sent(clock.now(), outgoing.take());
        }
        Ok(())
    }

    /// Reads until nothing is left. `Some` when the response is complete: whether the connection
    /// can be used again.
    fn receive<C: Clock, H: ResponseHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
    ) -> Result<Option<bool>, Failure> {
        let mut buffers = buffers.borrow_mut();
        let Self { socket, parser, .. } = self;
        let mut reader = ResponseReader {
            parser,
            handler,
            flow: ControlFlow::Continue(()),
            progress: Ok(Progress::Partial),
        };
        loop {
            let read = socket.receive(rx_clock, &mut buffers, &mut |bytes, rx_time| {
                reader.feed(bytes, rx_time);
            })?;
            if reader.flow == ControlFlow::Break(()) {
                return Ok(Some(false));
            }
            match (std::mem::replace(&mut reader.progress, Ok(Progress::Partial))?, read) {
                (Progress::Complete { reusable }, read) => {
                    return Ok(Some(reusable && read != ReadResult::Closed));
                }
                (Progress::Partial, ReadResult::Bytes) => {}
                (Progress::Partial, ReadResult::WouldBlock) => return Ok(None),
                (Progress::Partial, ReadResult::Closed) => {
                    return reader.parser.close().map(|_| Some(false));
                }
            }
        }
    }
}

/// Parses what is read and passes it to the handler.
struct ResponseReader<'a, H> {
    parser: &'a mut ResponseParser,
    handler: &'a mut H,
    flow: ControlFlow<()>,
    progress: Result<Progress, Failure>,
}

impl<H: ResponseHandler> ResponseReader<'_, H> {
    /// Takes plaintext of one read.
    fn feed(&mut self, bytes: &[u8], rx_time: RxTime) {
        self.handler.received(bytes.len(), rx_time);
        if self.progress != Ok(Progress::Partial) {
            // A second TLS record after the end of the response.
            self.progress = Ok(Progress::Complete { reusable: false });
            return;
        }
        let Self { parser, handler, flow, .. } = self;
        self.progress = parser.feed(bytes, &mut |part| match part {
            ResponsePart::Head(head) => handler.head(&head),
            ResponsePart::Body(body) if *flow == ControlFlow::Continue(()) => {
                *flow = handler.body(body, rx_time.at);
            }
            ResponsePart::Body(_) => {}
        });
    }
}
