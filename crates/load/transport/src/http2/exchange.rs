//! One request and its response on a stream.

use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};

use plimsoll_measure::{Clock, Moment};

use super::connection_state::{ConnectionHandle, OnSent, StreamInbox};
use super::session::NewRequest;
use super::shared_connection::StreamSlot;
use super::stream_table::StreamKey;
use crate::buffers::EncodedRequest;
use crate::failure::Failure;
use crate::message::{Request, RequestHead, ResponseHandler};
use crate::rx_timestamp::RxClock;

impl StreamSlot {
    /// Sends a request and reads its response to the end. The request counts as sent when its last
    /// byte was passed to the kernel, which the target's flow control can delay.
    ///
    /// # Cancel safety
    /// A dropped exchange resets its stream. The connection stays usable.
    pub(crate) fn exchange<'a, C: Clock, H: ResponseHandler>(
        &'a mut self,
        rx_clock: &'a RxClock<C>,
        Request { head, id, encoded, .. }: Request<'a>,
        handler: &'a mut H,
    ) -> StreamExchange<'a, C, H> {
        let (connection, inbox) = self.parts();
        StreamExchange {
            connection,
            clock: rx_clock.clock(),
            head,
            id,
            encoded,
            handler,
            inbox,
            stage: Stage::Waiting { ticket: None },
            queued: 0,
            sent_reported: false,
            stalled_since: None,
        }
    }
}

/// Progress of an exchange.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Without a stream yet.
    Waiting {
        /// Its number in the queue for a stream.
        ticket: Option<u64>,
    },
    /// With a stream.
    Open(StreamKey),
}

/// An exchange over one stream.
pub(crate) struct StreamExchange<'a, C: Clock, H: ResponseHandler> {
    connection: &'a ConnectionHandle,
    clock: &'a C,
    head: &'a RequestHead,
    id: Option<&'a [u8]>,
    encoded: EncodedRequest,
    handler: &'a mut H,
    /// Events taken from the connection's state; empty between two polls.
    inbox: &'a mut StreamInbox,
    stage: Stage,
    /// Bytes of the body that are queued or no longer needed.
    queued: usize,
    /// Whether the handler knows that the request is sent.
    sent_reported: bool,
    /// When the request began to wait for the target.
    stalled_since: Option<Moment>,
}

impl<C: Clock, H: ResponseHandler> StreamExchange<'_, C, H> {
    /// Proceeds as far as possible.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        let key = match self.stage {
            Stage::Open(key) => key,
            Stage::Waiting { ticket } => match ready!(self.open(ticket, context)) {
                Ok(key) => key,
                Err(failure) => return Poll::Ready(Err(failure)),
            },
        };
        if !self.is_queued() {
            self.queue_body(key);
        }
        self.receive(key, context)
    }

    /// Opens a stream as soon as the target allows another one.
    fn open(
        &mut self,
        mut ticket: Option<u64>,
        context: &Context<'_>,
    ) -> Poll<Result<StreamKey, Failure>> {
        let mut state = self.connection.state.borrow_mut();
        if let Some(failure) = state.open_failure() {
            return Poll::Ready(Err(failure));
        }
        let body_len = self.encoded.body.len();
        let request = NewRequest { head: self.head, id: self.id, body_len };
        let no_body = body_len == 0;
        let opened = state.may_open(ticket).then(|| state.session.open(request)).flatten();
        let Some(key) = opened else {
            state.wait(&mut ticket, context);
            self.stage = Stage::Waiting { ticket };
            self.stalled_since = self.stalled_since.or_else(|| Some(self.clock.now()));
            return Poll::Pending;
        };
        self.stage = Stage::Open(key);
        state.stop_waiting(ticket);
        state.add_stream(key);
        if no_body {
            state.request_queued(key, OnSent::Record);
        }
        state.request_flush();
        drop(state);
        if no_body {
            self.end_stall();
        }
        Poll::Ready(Ok(key))
    }

    /// Queues as much of the body as the target's windows allow.
    fn queue_body(&mut self, key: StreamKey) {
        let mut state = self.connection.state.borrow_mut();
        let taken = state.session.send_body(key, &self.encoded.body[self.queued..]);
        self.queued += taken;
        if taken > 0 {
            state.request_flush();
        }
        if self.is_queued() {
            state.request_queued(key, OnSent::Wake);
        } else if state.session.is_request_over(key) {
            // The stream has ended, so the rest cannot be sent. The inbox has the reason.
            self.queued = self.encoded.body.len();
        }
        drop(state);
        if self.is_queued() {
            self.end_stall();
        } else {
            self.stalled_since = self.stalled_since.or_else(|| Some(self.clock.now()));
        }
    }

    fn is_queued(&self) -> bool {
        self.queued >= self.encoded.body.len()
    }

    /// Passes received data to the handler.
    fn receive(&mut self, key: StreamKey, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        if !self.connection.state.borrow_mut().collect(key, self.inbox, context) {
            return Poll::Pending;
        }
        // The response to a fully queued request can arrive before the write is recorded.
        let responded = self.inbox.head_at().filter(|_| self.is_queued());
        self.report_sent(self.inbox.sent_at.or(responded));
        let delivered = self.inbox.drain_into(self.handler);
        let end = self.inbox.end.take();
        self.inbox.clear();
        if delivered.bytes > 0 {
            self.connection.state.borrow_mut().consume(key, delivered.bytes);
        }
        match end {
            _ if delivered.flow == ControlFlow::Break(()) => Poll::Ready(Ok(())),
            None => Poll::Pending,
            Some(end) => {
                if end.is_ok() && !self.sent_reported {
                    // The response came before the whole request was sent, so the rest is not sent.
                    self.report_sent(Some(self.clock.now()));
                }
                Poll::Ready(end)
            }
        }
    }

    fn report_sent(&mut self, at: Option<Moment>) {
        if let Some(at) = at.filter(|_| !self.sent_reported) {
            self.sent_reported = true;
            self.handler.sent(at, std::mem::take(&mut self.encoded));
        }
    }

    fn end_stall(&mut self) {
        if let Some(since) = self.stalled_since.take() {
            self.handler.send_stalled(self.clock.now().since(since));
        }
    }
}

/// Releases the stream, whether the exchange is complete or was dropped.
impl<C: Clock, H: ResponseHandler> Drop for StreamExchange<'_, C, H> {
    fn drop(&mut self) {
        self.end_stall();
        let sent_at = {
            let mut state = self.connection.state.borrow_mut();
            match self.stage {
                Stage::Waiting { ticket } => {
                    state.stop_waiting(ticket);
                    None
                }
                Stage::Open(key) => {
                    let sent_at = state.take_sent_at(key);
                    state.close(key);
                    sent_at
                }
            }
        };
        self.report_sent(sent_at);
    }
}
