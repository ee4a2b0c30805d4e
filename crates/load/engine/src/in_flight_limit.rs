//! The bound on how many requests of the open model are in flight at once.
//!
//! Each slot has a second clock: the time when it would be free if the generator were never late.
//! This separates the part of a queue that the generator caused from the part that the target
//! caused (`docs/adr/0007-judged-by-effect.md`).

use std::cell::{Cell, RefCell, RefMut};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_plan::Overflow;
use tokio::sync::Semaphore;

/// One worker's part of `max_in_flight`.
#[derive(Debug)]
pub(crate) struct InFlightLimit {
    permits: Semaphore,
    overflow: Overflow,
    slots: RefCell<Slots>,
}

/// The slots as they would be if the generator were never late.
#[derive(Debug, Default)]
struct Slots {
    /// Free slots that were free before any start that is still to come.
    free: usize,
    /// Since when the other free slots would be free.
    clocks: BinaryHeap<Reverse<Moment>>,
    /// The last start of a request in a slot.
    last_start: Moment,
    /// Delay that the generator added to the starts of the requests in flight.
    lateness: Nanos,
    /// The time for which requests occupied slots, and their number.
    occupied: Nanos,
    ended: u64,
}

impl Slots {
    /// Takes the slot that would be free first, for a request that is due at `intended`. Returns
    /// since when it would be free.
    fn take(&mut self, intended: Moment) -> Moment {
        // Arrivals come in order of time, so a slot that is free for this one is free for all later
        // ones.
        while self.clocks.peek().is_some_and(|Reverse(clock)| *clock <= intended) {
            self.clocks.pop();
            self.free += 1;
        }
        if self.free > 0 {
            self.free -= 1;
            return Moment::EPOCH;
        }
        self.clocks.pop().map_or(Moment::EPOCH, |Reverse(clock)| clock)
    }
}

impl InFlightLimit {
    /// Room for `max` requests. Beyond it, `overflow` decides.
    pub(crate) fn new(max: u64, overflow: Overflow) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let slots = RefCell::new(Slots { free: max, ..Slots::default() });
        Self { permits: Semaphore::new(max), overflow, slots }
    }

    /// The policy for an arrival that finds no free permit.
    pub(crate) const fn overflow(&self) -> Overflow {
        self.overflow
    }

    /// Waits for a permit, first come, first served, for a request that is due at `intended`.
    pub(crate) async fn acquire(self: &Rc<Self>, intended: Moment) -> Option<InFlightPermit> {
        // The semaphore is never closed, so there always is a permit in the end.
        self.permits.acquire().await.ok()?.forget();
        Some(self.permit(intended))
    }

    /// A permit, if one is free now.
    pub(crate) fn try_acquire(self: &Rc<Self>, intended: Moment) -> Option<InFlightPermit> {
        self.permits.try_acquire().ok()?.forget();
        Some(self.permit(intended))
    }

    /// A permit as the overflow policy gives it.
    pub(crate) async fn acquire_by_policy(
        self: &Rc<Self>,
        intended: Moment,
    ) -> Option<InFlightPermit> {
        match self.overflow {
            Overflow::Queue => self.acquire(intended).await,
            Overflow::Drop => self.try_acquire(intended),
        }
    }

    fn permit(self: &Rc<Self>, intended: Moment) -> InFlightPermit {
        let free = self.slots().take(intended);
        let start = intended.max(free);
        InFlightPermit {
            limit: Rc::clone(self),
            start,
            end: Cell::new(None),
            late: Cell::default(),
        }
    }

    fn slots(&self) -> RefMut<'_, Slots> {
        self.slots.borrow_mut()
    }

    /// About how many more requests a generator that is never late would have sent by now, while
    /// arrivals wait for a slot: it would be ahead by the delay it added to the starts of the
    /// requests in flight, and a slot takes the next request after the mean time of a request.
    /// None, if its last start was after `end`.
    pub(crate) fn owed(&self, end: Moment) -> u64 {
        let slots = self.slots();
        if slots.last_start >= end {
            return 0;
        }
        let owed = u128::from(slots.lateness.as_u64()) * u128::from(slots.ended);
        let owed = owed.checked_div(u128::from(slots.occupied.as_u64())).unwrap_or_default();
        u64::try_from(owed).unwrap_or(u64::MAX)
    }
}

/// The right to have one request in flight; released when dropped.
#[derive(Debug)]
pub(crate) struct InFlightPermit {
    limit: Rc<InFlightLimit>,
    /// When a generator that is never late would start the request: when it is intended, or when
    /// such a generator would have the slot.
    start: Moment,
    /// When the request would end then.
    end: Cell<Option<Moment>>,
    /// How much later the request started.
    late: Cell<Nanos>,
}

impl InFlightPermit {
    /// When a generator that is never late would start the request.
    pub(crate) const fn start(&self) -> Moment {
        self.start
    }

    /// The request starts, `late` by the generator's fault.
    pub(crate) fn started(&self, late: Nanos) {
        self.late.set(late);
        let mut slots = self.limit.slots();
        slots.lateness += late;
        slots.last_start = slots.last_start.max(self.start);
    }

    /// Releases the slot: a generator that is never late would have had it back at `end`.
    pub(crate) fn release(self, end: Moment) {
        self.end.set(Some(end));
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        let mut slots = self.limit.slots();
        // Without an end the run is over, and the request counts as in flight.
        if let Some(end) = self.end.get() {
            slots.lateness = slots.lateness.saturating_sub(self.late.get());
            slots.occupied += end.since(self.start);
            slots.ended += 1;
        }
        slots.clocks.push(Reverse(self.end.get().unwrap_or(self.start)));
        drop(slots);
        self.limit.permits.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    fn limit(max: u64) -> Rc<InFlightLimit> {
        Rc::new(InFlightLimit::new(max, Overflow::Queue))
    }

    /// Two slots, requests of 30 ms: a generator that is never late would send every 15 ms.
    #[test]
    fn a_held_arrival_starts_when_a_generator_in_time_would_have_its_slot() {
        let limit = limit(2);
        let mut starts = Vec::new();
        let mut held = Vec::new();
        for n in 0..6_u64 {
            let permit = limit.try_acquire(at(n * 10));
            let permit = permit.unwrap_or_else(|| {
                let first: InFlightPermit = held.remove(0);
                let end = first.start() + Nanos::from_millis(30);
                first.release(end);
                limit.try_acquire(at(n * 10)).unwrap()
            });
            starts.push(permit.start());
            held.push(permit);
        }
        assert_eq!(starts, [0, 10, 30, 40, 60, 70].map(at));
    }

    #[test]
    fn a_slot_that_was_free_in_time_does_not_move_a_start() {
        let limit = limit(1);
        limit.try_acquire(at(0)).unwrap().release(at(5));
        assert_eq!(limit.try_acquire(at(20)).unwrap().start(), at(20));
    }

    #[test]
    fn a_permit_is_given_again_only_after_its_release() {
        let limit = limit(1);
        let permit = limit.try_acquire(at(0)).unwrap();
        assert!(limit.try_acquire(at(1)).is_none());
        permit.release(at(1));
        assert!(limit.try_acquire(at(1)).is_some());
    }

    /// Requests of 10 ms in two slots. The two in flight were sent 100 ms late.
    #[test]
    fn what_a_late_generator_owes_is_its_lateness_over_the_time_of_a_request() {
        let limit = limit(2);
        limit.try_acquire(at(0)).unwrap().release(at(10));
        let held = [0, 0].map(|_| limit.try_acquire(at(10)).unwrap());
        assert_eq!(limit.owed(at(1_000)), 0);
        for permit in held {
            permit.started(Nanos::from_millis(100));
        }
        assert_eq!(limit.owed(at(1_000)), 20);
        // Its last start was not before this end.
        assert_eq!(limit.owed(at(10)), 0);
    }
}
