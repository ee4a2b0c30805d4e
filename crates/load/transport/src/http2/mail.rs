//! What the driver has received for one exchange and the exchange has not yet heard.

use plimsoll_measure::{ErrorClass, Moment};

use super::head::Head;
use super::session::{Cut, Event};
use crate::connection::ResponseHandler;
use crate::failure::Failure;
use crate::stamp::RxTime;
use std::ops::ControlFlow;

/// Room for bodies that is kept when there are none.
const KEPT: usize = 64 * 1024;

/// A part of a response, kept until its receiver has time for it.
#[derive(Debug, Default)]
pub(super) struct Mail {
    head: Head,
    /// When the head arrived, until it is delivered.
    head_at: Option<RxTime>,
    body: Vec<u8>,
    /// Bytes of the body by read.
    reads: Vec<(usize, RxTime)>,
    tight: bool,
    /// How it ended.
    pub(super) end: Option<Result<(), Failure>>,
    /// When the last byte of the request was handed to the kernel, until it is told.
    pub(super) sent_at: Option<Moment>,
}

/// What was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    /// Bytes of the body.
    pub(super) bytes: usize,
    pub(super) flow: ControlFlow<()>,
}

impl Mail {
    pub(super) fn is_empty(&self) -> bool {
        self.head_at.is_none()
            && self.reads.is_empty()
            && self.end.is_none()
            && self.sent_at.is_none()
    }

    /// When the head arrived, if it is here.
    pub(super) fn head_at(&self) -> Option<Moment> {
        self.head_at.map(|arrival| arrival.at)
    }

    /// Takes an event over that a read brought.
    pub(super) fn put(&mut self, event: Event<'_>, arrival: RxTime) {
        match event {
            Event::Head(head) => {
                std::mem::swap(&mut self.head, head);
                self.head_at = Some(arrival);
            }
            Event::Data { bytes, tight } => {
                self.body.extend_from_slice(bytes);
                self.tight |= tight;
                match self.reads.last_mut() {
                    Some((length, at)) if *at == arrival => *length += bytes.len(),
                    _ => self.reads.push((bytes.len(), arrival)),
                }
            }
            Event::End => self.end = Some(Ok(())),
            Event::Cut(cut) => self.end = Some(Err(cut.into())),
            Event::Room => {}
        }
    }

    /// Tells a receiver everything but the end, and becomes empty.
    pub(super) fn deliver<R: ResponseHandler>(&mut self, receiver: &mut R) -> Delivered {
        if let Some(arrival) = self.head_at.take() {
            receiver.received(self.head.size(), arrival);
            self.head.show(|head| receiver.head(head));
        }
        if std::mem::take(&mut self.tight) {
            receiver.receive_stalled();
        }
        let mut delivered = Delivered { bytes: 0, flow: ControlFlow::Continue(()) };
        for (length, arrival) in self.reads.drain(..) {
            let bytes = &self.body[delivered.bytes..delivered.bytes + length];
            delivered.bytes += length;
            receiver.received(length, arrival);
            delivered.flow = receiver.body(bytes, arrival.at);
            if delivered.flow == ControlFlow::Break(()) {
                break;
            }
        }
        self.body.clear();
        self.body.shrink_to(KEPT);
        delivered
    }

    /// Makes it ready for another exchange.
    pub(super) fn clear(&mut self) {
        (self.head_at, self.end, self.sent_at, self.tight) = (None, None, None, false);
        self.body.clear();
        self.body.shrink_to(KEPT);
        self.reads.clear();
    }
}

impl From<Cut> for Failure {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Reset(code) => {
                Self::new(ErrorClass::Reset, format!("the target reset the stream: {code}"))
            }
            Cut::GoAway(code) => Self::new(
                ErrorClass::ClosedEarly,
                format!("the target closes the connection and leaves the request: {code}"),
            ),
            Cut::Malformed(detail) => Self::new(ErrorClass::MalformedHead, detail),
            Cut::HeadTooLarge => {
                Self::new(ErrorClass::HeadTooLarge, "more than 64 KiB or 100 headers")
            }
            Cut::Short(missing) => Self::new(
                ErrorClass::BodyTruncated,
                format!("{missing} bytes of the body are missing"),
            ),
        }
    }
}
