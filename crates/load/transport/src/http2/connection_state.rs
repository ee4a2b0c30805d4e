//! State of a shared connection, used by its exchanges and its driver.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::task::{Context, Waker};

use plimsoll_measure::{ErrorClass, Moment};

use super::session::{Event, Session};
use super::stream_table::StreamKey;
use super::{ConnectionError, DecodedHead};
use crate::failure::Failure;
use crate::message::ResponseHandler;
use crate::rx_timestamp::RxTime;

/// The state that the driver and the exchanges of a connection share. It is never borrowed while
/// code outside this module runs.
#[derive(Debug, Default)]
pub(super) struct ConnectionHandle {
    pub(super) state: RefCell<ConnectionState>,
    /// Whether no further stream will be opened.
    pub(super) closed: Cell<bool>,
}

/// State of a connection and its streams.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    pub(super) session: Session,
    /// By stream key.
    streams: Vec<StreamState>,
    /// Requests that are queued but not yet written to their end.
    unsent: VecDeque<UnsentRequest>,
    /// Exchanges that wait until the target allows another stream, first come, first served.
    waiting: VecDeque<(u64, Waker)>,
    tickets: u64,
    driver: Option<Waker>,
    flush_requested: bool,
    /// Whether the connection has been abandoned by its owners.
    pub(super) abandoned: bool,
    /// Why the connection ended.
    ended: Option<Failure>,
}

/// Events and waker of one stream's exchange.
#[derive(Debug, Default)]
struct StreamState {
    inbox: StreamInbox,
    waker: Option<Waker>,
    /// Whether the exchange was woken and has not polled yet.
    woken: bool,
}

/// A request whose last byte is at `end`, counted over all bytes ever queued.
#[derive(Clone, Copy, Debug)]
struct UnsentRequest {
    key: StreamKey,
    end: u64,
    on_sent: OnSent,
}

/// The action when a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnSent {
    /// Record the time.
    Record,
    /// Record the time and wake the exchange, so that it returns the buffers of its body.
    Wake,
}

impl StreamState {
    fn set_sent(&mut self, at: Moment, on_sent: OnSent) {
        self.inbox.sent_at = Some(at);
        if on_sent == OnSent::Wake {
            self.wake();
        }
    }

    fn wake(&mut self) {
        if !std::mem::replace(&mut self.woken, true)
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }
}

/// Methods for the exchanges.
impl ConnectionState {
    /// Makes the driver write the queue, after all exchanges that can run now have run.
    pub(super) fn request_flush(&mut self) {
        if !std::mem::replace(&mut self.flush_requested, true)
            && let Some(driver) = &self.driver
        {
            driver.wake_by_ref();
        }
    }

    /// Whether it is this exchange's turn to open a stream. Without a ticket it is, if no exchange
    /// waits.
    pub(super) fn may_open(&self, ticket: Option<u64>) -> bool {
        self.waiting.front().map(|(first, _)| *first) == ticket && self.session.can_open()
    }

    /// Joins the queue for a stream, or updates the waker there.
    pub(super) fn wait(&mut self, ticket: &mut Option<u64>, context: &Context<'_>) {
        let waker = context.waker();
        let number = *ticket.get_or_insert_with(|| {
            self.tickets += 1;
            self.tickets
        });
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.waiting.push_back((number, waker.clone())),
        }
    }

    /// Leaves the queue for a stream.
    pub(super) fn stop_waiting(&mut self, ticket: Option<u64>) {
        let Some(ticket) = ticket else { return };
        self.waiting.retain(|(waiting, _)| *waiting != ticket);
        self.wake_next();
    }

    /// Wakes the first exchange in the queue, if it can open a stream or must fail.
    fn wake_next(&self) {
        if let Some((_, waker)) = self.waiting.front()
            && (self.session.can_open() || self.ended.is_some() || !self.session.accepts_streams())
        {
            waker.wake_by_ref();
        }
    }

    /// Makes sure that a new stream has its state here.
    pub(super) fn add_stream(&mut self, key: StreamKey) {
        while self.streams.len() <= key.0 {
            self.streams.push(StreamState::default());
        }
    }

    /// Records that the request of a stream is completely queued.
    pub(super) fn request_queued(&mut self, key: StreamKey, on_sent: OnSent) {
        let end = self.session.bytes_queued();
        self.unsent.push_back(UnsentRequest { key, end, on_sent });
    }

    /// Swaps an empty inbox for a stream's inbox, if anything arrived. The exchange is woken when
    /// more arrives.
    pub(super) fn collect(
        &mut self,
        key: StreamKey,
        empty: &mut StreamInbox,
        context: &Context<'_>,
    ) -> bool {
        let Some(stream) = self.streams.get_mut(key.0) else { return false };
        stream.woken = false;
        match &mut stream.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => stream.waker = Some(context.waker().clone()),
        }
        if stream.inbox.is_empty() {
            return false;
        }
        std::mem::swap(&mut stream.inbox, empty);
        true
    }

    /// Records that bytes of a stream's body were consumed. A window update may be sent.
    pub(super) fn consume(&mut self, key: StreamKey, bytes: usize) {
        let before = self.session.bytes_queued();
        self.session.consume(key, bytes);
        self.flush_if_queued_since(before);
    }

    fn flush_if_queued_since(&mut self, before: u64) {
        if self.session.bytes_queued() > before {
            self.request_flush();
        }
    }

    /// Takes the time when the request of a stream was written.
    pub(super) fn take_sent_at(&mut self, key: StreamKey) -> Option<Moment> {
        self.streams.get_mut(key.0)?.inbox.sent_at.take()
    }

    /// Releases a stream, whether it is complete or not.
    pub(super) fn close(&mut self, key: StreamKey) {
        let before = self.session.bytes_queued();
        self.session.close(key);
        self.flush_if_queued_since(before);
        self.unsent.retain(|unsent| unsent.key != key);
        if let Some(stream) = self.streams.get_mut(key.0) {
            stream.inbox.clear();
            stream.woken = false;
        }
        self.wake_next();
    }

    /// The reason why no further stream can be opened, if there is one.
    pub(super) fn open_failure(&self) -> Option<Failure> {
        self.ended.clone().or_else(|| {
            (!self.session.accepts_streams()).then(|| {
                let detail = "the target closed the connection before the request was sent";
                Failure::unprocessed(ErrorClass::ClosedEarly, detail)
            })
        })
    }
}

/// Methods for the driver.
impl ConnectionState {
    /// Registers the driver's waker. Returns whether a flush was requested.
    pub(super) fn register_driver(&mut self, context: &Context<'_>) -> bool {
        match &mut self.driver {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.driver = Some(context.waker().clone()),
        }
        std::mem::take(&mut self.flush_requested)
    }

    /// Processes bytes of one read, and wakes the exchanges that are affected.
    pub(super) fn feed(&mut self, bytes: &[u8], rx_time: RxTime) -> Result<(), ConnectionError> {
        let Self { session, streams, .. } = self;
        let fed = session.feed(bytes, &mut |key, event: Event<'_>| {
            if let Some(stream) = streams.get_mut(key.0) {
                stream.inbox.push(event, rx_time);
                stream.wake();
            }
        });
        self.wake_next();
        fed
    }

    /// Records that the kernel has accepted everything that was queued.
    pub(super) fn record_written(&mut self, at: Moment) {
        let written = self.session.bytes_written();
        while let Some(&unsent) = self.unsent.front().filter(|unsent| unsent.end <= written) {
            if let Some(stream) = self.streams.get_mut(unsent.key.0) {
                stream.set_sent(at, unsent.on_sent);
            }
            self.unsent.pop_front();
        }
    }

    /// Ends the connection: every waiting exchange receives the failure.
    pub(super) fn end(&mut self, failure: &Failure) {
        self.ended = Some(failure.clone());
        for stream in &mut self.streams {
            if stream.inbox.end.is_none() {
                stream.inbox.end = Some(Err(failure.clone()));
            }
            stream.wake();
        }
        for (_, waker) in &self.waiting {
            waker.wake_by_ref();
        }
    }
}

// Events of one stream that the driver has received and the exchange has not yet handled.

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
