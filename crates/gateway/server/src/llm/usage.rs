//! Token usage, extracted from responses as they pass.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use bytes::Bytes;
use plimsoll_gateway_dialect::{Endpoint, StreamStatus, Usage, UsageObserver};
use tokio::task::spawn_local;

use crate::body_filter::{BodyFilter, BoxError};
use crate::budget::RequestReservation;

/// The usage of one response, for its log row.
#[derive(Debug, Default)]
pub(crate) struct ObservedUsage {
    usage: Cell<Option<Usage>>,
    truncated: Cell<bool>,
}

impl ObservedUsage {
    pub(super) fn set(&self, usage: Option<Usage>) {
        self.usage.set(usage);
    }

    pub(crate) fn get(&self) -> Option<Usage> {
        self.usage.get()
    }

    /// Whether the upstream's stream ended before its last event, although the connection was
    /// closed properly.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated.get()
    }
}

/// Observes the usage of a passing response, and settles its reservation at the end. The bytes stay
/// unchanged: a truncated stream reaches the client truncated.
pub(super) struct UsageFilter {
    observer: UsageObserver,
    is_stream: bool,
    reservation: Option<RequestReservation>,
    usage: Rc<ObservedUsage>,
}

impl UsageFilter {
    /// `endpoint` is the upstream's, whose dialect the response has.
    pub(super) fn new(
        (endpoint, is_stream): (Endpoint, bool),
        reservation: Option<RequestReservation>,
        usage: &Rc<ObservedUsage>,
    ) -> Self {
        let observer =
            if is_stream { UsageObserver::stream(endpoint) } else { UsageObserver::body(endpoint) };
        Self { observer, is_stream, reservation, usage: Rc::clone(usage) }
    }

    fn settle(&mut self) {
        let usage = self.observer.usage();
        self.usage.set(usage);
        if let Some(reservation) = self.reservation.take() {
            let counted = self.observer.content_events();
            poll_or_spawn(async move { reservation.settle(usage, counted).await });
        }
    }
}

impl BodyFilter for UsageFilter {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        self.observer.feed(&chunk);
        Ok(chunk)
    }

    fn end(&mut self) -> Result<Bytes, BoxError> {
        let ending = self.observer.finish();
        self.usage.truncated.set(self.is_stream && ending == StreamStatus::Truncated);
        self.settle();
        Ok(Bytes::new())
    }

    fn is_transparent(&self) -> bool {
        true
    }
}

/// An aborted response costs the tokens that passed.
impl Drop for UsageFilter {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Polls a future once; if it is not ready then, spawns a task that completes it.
pub(super) fn poll_or_spawn(work: impl Future<Output = ()> + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        spawn_local(work);
    }
}
