//! The number of requests that a run may send.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_measure::{Moment, Nanos};

/// How many requests may still be sent. Workers share it while they run, because parts of it would
/// not be used up at the same time.
#[derive(Debug)]
pub(crate) struct RequestBudget {
    left: AtomicU64,
    /// The earliest intended start of a request that was taken.
    begin: AtomicU64,
    /// One nanosecond after the latest intended start of a request that was taken.
    end: AtomicU64,
}

impl RequestBudget {
    /// A budget of so many requests.
    pub(crate) const fn new(requests: u64) -> Self {
        let [begin, end] = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
        Self { left: AtomicU64::new(requests), begin, end }
    }

    /// Takes one, for a request that is intended at `at`; `false` if none is left.
    pub(crate) fn take(&self, at: Moment) -> bool {
        let end = (at + Nanos::new(1)).as_nanos();
        // Before the count: who sees that nothing is left sees the end of all that was taken.
        if self.is_spent() {
            return false;
        }
        self.begin.fetch_min(at.as_nanos(), Ordering::Relaxed);
        self.end.fetch_max(end, Ordering::Relaxed);
        self.left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1))
            .is_ok()
    }

    /// Whether no request may be sent any more.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// When the first request that was taken is intended to start; `None` as long as requests may
    /// be sent.
    pub(crate) fn begin(&self) -> Option<Moment> {
        self.is_spent().then(|| Moment::from_nanos(self.begin.load(Ordering::Relaxed)))
    }

    /// When the load ended: just after the last request that was taken is intended to start.
    /// `None` as long as requests may be sent.
    pub(crate) fn end(&self) -> Option<Moment> {
        self.is_spent().then(|| Moment::from_nanos(self.end.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    #[test]
    fn the_load_ends_with_the_latest_request_of_the_budget() {
        let budget = RequestBudget::new(3);
        assert!(budget.take(at(10)) && budget.take(at(30)));
        assert_eq!(budget.end(), None);
        assert!(budget.take(at(20)));
        assert!(!budget.take(at(40)), "a request that is not sent moves nothing");
        assert_eq!(budget.end(), Some(at(30) + Nanos::new(1)));
    }
}
