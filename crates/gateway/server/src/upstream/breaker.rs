//! The circuit breaker: a server that keeps failing gets no requests for a while.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::spec::BreakerSpec;

/// Closed while `open_until` is 0. Open until that time; then one trial request decides.
#[derive(Debug)]
pub(super) struct Breaker {
    /// Failures in a row that open it.
    max_failures: u32,
    /// Nanoseconds.
    open_for: u64,
    /// Failures in a row so far.
    failures: AtomicU32,
    /// Monotonic nanoseconds.
    open_until: AtomicU64,
}

impl Breaker {
    pub(super) fn new(spec: BreakerSpec) -> Self {
        Self {
            max_failures: spec.failures.max(1),
            open_for: spec.open.nanos(),
            failures: AtomicU32::new(0),
            open_until: AtomicU64::new(0),
        }
    }

    /// Whether it would admit a request. This changes no state.
    pub(super) fn may_admit(&self, now: u64) -> bool {
        self.open_until.load(Ordering::Relaxed) <= now
    }

    /// Whether it admits this request. The first one after `open_until` is the trial; the breaker
    /// stays open as long again for all others.
    pub(super) fn admits(&self, now: u64) -> bool {
        let until = self.open_until.load(Ordering::Relaxed);
        if until == 0 {
            return true;
        }
        let again = now.saturating_add(self.open_for);
        until <= now
            && self
                .open_until
                .compare_exchange(until, again, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    pub(super) fn record(&self, success: bool, now: u64) {
        if success {
            // Read first: a store would take the cache line from the other workers on every
            // request.
            if self.failures.load(Ordering::Relaxed) != 0 {
                self.failures.store(0, Ordering::Relaxed);
                self.open_until.store(0, Ordering::Relaxed);
            }
        } else if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= self.max_failures {
            self.open_until.store(now.saturating_add(self.open_for), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::HumanDuration;

    #[test]
    fn it_opens_after_failures_in_a_row_admits_one_trial_and_closes_on_success() {
        let breaker = Breaker::new(BreakerSpec { failures: 3, open: HumanDuration::secs(1) });
        let second = 1_000_000_000;
        breaker.record(false, 1);
        breaker.record(false, 2);
        breaker.record(true, 3);
        breaker.record(false, 4);
        breaker.record(false, 5);
        assert!(breaker.admits(6), "two in a row are not three");
        breaker.record(false, 10);
        assert!(!breaker.admits(10 + second - 1), "open");
        assert!(breaker.admits(10 + second), "one trial");
        assert!(!breaker.admits(10 + second), "and only one");
        breaker.record(false, 11 + second);
        assert!(!breaker.admits(12 + second), "it failed: open again");
        assert!(breaker.admits(11 + 2 * second));
        breaker.record(true, 12 + 2 * second);
        assert!(breaker.admits(13 + 2 * second) && breaker.admits(13 + 2 * second), "closed");
    }
}
