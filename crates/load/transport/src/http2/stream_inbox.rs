//! Events of one stream that the driver has received and the exchange has not yet handled.

use std::ops::ControlFlow;

use plimsoll_measure::Moment;

use super::DecodedHead;
use super::session::Event;
use crate::failure::Failure;
use crate::message::ResponseHandler;
use crate::rx_timestamp::RxTime;

/// Buffer capacity for bodies that an empty inbox keeps.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Received parts of a response, until its handler receives them.
#[derive(Debug, Default)]
pub(super) struct StreamInbox {
    head: DecodedHead,
    /// When the head arrived, until it is delivered.
    head_at: Option<RxTime>,
    body: Vec<u8>,
    /// Bytes of the body in each read.
    reads: Vec<(usize, RxTime)>,
    window_low: bool,
    /// The end of the response, once it is known.
    pub(super) end: Option<Result<(), Failure>>,
    /// Time at which the last byte of the request was passed to the kernel, until it is reported.
    pub(super) sent_at: Option<Moment>,
}

/// The result of draining an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    /// Bytes of the body.
    pub(super) bytes: usize,
    pub(super) flow: ControlFlow<()>,
}

impl StreamInbox {
    pub(super) fn is_empty(&self) -> bool {
        self.head_at.is_none()
            && self.reads.is_empty()
            && self.end.is_none()
            && self.sent_at.is_none()
    }

    /// Time at which the head arrived, if it did.
    pub(super) fn head_at(&self) -> Option<Moment> {
        self.head_at.map(|rx_time| rx_time.at)
    }

    /// Adds an event of one read.
    pub(super) fn push(&mut self, event: Event<'_>, rx_time: RxTime) {
        match event {
            Event::Head(head) => {
                std::mem::swap(&mut self.head, head);
                self.head_at = Some(rx_time);
            }
            Event::Data { bytes, window_low } => {
                self.body.extend_from_slice(bytes);
                self.window_low |= window_low;
                match self.reads.last_mut() {
                    Some((length, at)) if *at == rx_time => *length += bytes.len(),
                    _ => self.reads.push((bytes.len(), rx_time)),
                }
            }
            Event::End => self.end = Some(Ok(())),
            Event::Error(error) => self.end = Some(Err(error.into())),
            Event::WindowOpen => {}
        }
    }

    /// Passes everything except the end to a handler, and empties the inbox.
    pub(super) fn drain_into<H: ResponseHandler>(&mut self, handler: &mut H) -> Delivered {
        if let Some(rx_time) = self.head_at.take() {
            handler.received(self.head.size(), rx_time);
            self.head.with_response_head(|head| handler.head(head));
        }
        if std::mem::take(&mut self.window_low) {
            handler.receive_stalled();
        }
        let mut delivered = Delivered { bytes: 0, flow: ControlFlow::Continue(()) };
        for (length, rx_time) in self.reads.drain(..) {
            let bytes = &self.body[delivered.bytes..delivered.bytes + length];
            delivered.bytes += length;
            handler.received(length, rx_time);
            delivered.flow = handler.body(bytes, rx_time.at);
            if delivered.flow == ControlFlow::Break(()) {
                break;
            }
        }
        self.body.clear();
        self.body.shrink_to(KEPT_CAPACITY);
        delivered
    }

    /// Resets it for another exchange.
    pub(super) fn clear(&mut self) {
        (self.head_at, self.end, self.sent_at, self.window_low) = (None, None, None, false);
        self.body.clear();
        self.body.shrink_to(KEPT_CAPACITY);
        self.reads.clear();
    }
}
