//! Token usage, read from responses as they pass.

use std::rc::Rc;

use bytes::Bytes;
use plimsoll_gateway_dialect::{Endpoint, UsageObserver};

use crate::base::poll_or_spawn::poll_or_spawn;
use crate::http::body_filter::{BodyFilter, BoxError};
use crate::layers::budget::RequestReservation;
use crate::layers::llm_info::ObservedUsage;

/// Observes the usage of a passing response, and settles its reservation at the end. The bytes stay
/// unchanged, so a truncated stream reaches the client truncated.
pub(super) struct UsageFilter {
    observer: UsageObserver,
    is_stream: bool,
    reservation: Option<RequestReservation>,
    usage: Rc<ObservedUsage>,
}

impl UsageFilter {
    /// `endpoint` is the upstream's, whose dialect the response has.
    pub(super) fn new(
        endpoint: Endpoint,
        is_stream: bool,
        reservation: Option<RequestReservation>,
        usage: &Rc<ObservedUsage>,
    ) -> Self {
        let observer =
            if is_stream { UsageObserver::stream(endpoint) } else { UsageObserver::body(endpoint) };
        Self { observer, is_stream, reservation, usage: Rc::clone(usage) }
    }

    fn settle(&mut self, has_ended: bool) {
        let usage = self.observer.usage();
        self.usage.set(usage);
        // The reservation is charged if the usage is unknown: for a whole response that is not an
        // answer, such as a background task, and for a stream without known events.
        let is_read = self.is_stream && self.observer.is_understood(has_ended);
        let is_known = is_read || usage.is_some() || self.observer.is_answer();
        if let Some(reservation) = self.reservation.take().filter(|_| is_known) {
            let estimated = self.observer.estimated_tokens();
            poll_or_spawn(async move { reservation.settle(usage, estimated).await });
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
        self.usage.set_ending(self.is_stream.then_some(ending), self.observer.is_answer());
        self.settle(true);
        Ok(Bytes::new())
    }

    fn held(&self) -> usize {
        self.observer.buffered()
    }

    fn is_transparent(&self) -> bool {
        true
    }
}

/// An aborted stream costs the tokens so far. For a whole response the upstream had finished before
/// it began, so its reservation is charged.
impl Drop for UsageFilter {
    fn drop(&mut self) {
        if self.is_stream {
            self.settle(false);
        }
    }
}
