//! The bound on how many requests of the open model are in flight at once.

use std::rc::Rc;

use plimsoll_profile::Overflow;
use tokio::sync::Semaphore;

/// One worker's part of `max_in_flight`.
#[derive(Debug)]
pub(crate) struct InFlightLimit {
    permits: Semaphore,
    overflow: Overflow,
}

impl InFlightLimit {
    /// Room for `max` requests, and for one at least. Beyond it, `overflow` decides.
    pub(crate) fn new(max: u64, overflow: Overflow) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        Self { permits: Semaphore::new(max.clamp(1, Semaphore::MAX_PERMITS)), overflow }
    }

    /// The policy for an arrival that finds no free permit.
    pub(crate) const fn overflow(&self) -> Overflow {
        self.overflow
    }

    /// Waits for a permit, first come, first served.
    pub(crate) async fn acquire(self: &Rc<Self>) -> Option<InFlightPermit> {
        // The semaphore is never closed, so there always is a permit in the end.
        self.permits.acquire().await.ok()?.forget();
        Some(InFlightPermit(Rc::clone(self)))
    }

    /// A permit, if one is free now.
    pub(crate) fn try_acquire(self: &Rc<Self>) -> Option<InFlightPermit> {
        self.permits.try_acquire().ok()?.forget();
        Some(InFlightPermit(Rc::clone(self)))
    }

    /// A permit as the overflow policy gives it.
    pub(crate) async fn acquire_by_policy(self: &Rc<Self>) -> Option<InFlightPermit> {
        match self.overflow {
            Overflow::Queue => self.acquire().await,
            Overflow::Drop => self.try_acquire(),
        }
    }
}

/// The right to have one request in flight; released when dropped.
#[derive(Debug)]
pub(crate) struct InFlightPermit(Rc<InFlightLimit>);

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        self.0.permits.add_permits(1);
    }
}
