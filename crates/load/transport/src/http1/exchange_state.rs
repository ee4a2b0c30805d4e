//! An HTTP/1.1 exchange without I/O: the unsent part of the request, and the interpretation of the
//! response as its bytes arrive. The owner of the socket calls it, so it is tested without a
//! network and in virtual time.

use std::ops::ControlFlow;

use plimsoll_measure::Moment;

use super::OutgoingRequest;
use super::response_parser::{Progress, ResponseParser, ResponsePart};
use crate::failure::Failure;
use crate::message::{Request, ResponseHandler};
use crate::rx_timestamp::RxTime;

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
