//! The circuit breaker: a server that fails again and again is left alone for a while.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::spec::BreakerSpec;

/// Closed while `open_until` is 0. Open until that time; then one request tries, and decides.
#[derive(Debug)]
pub(super) struct Breaker {
    failures: u32,
    open_for: u64,
    /// Failures in a row.
    seen: AtomicU32,
    /// Monotonic nanoseconds.
    open_until: AtomicU64,
}

impl Breaker {
    pub(super) fn new(spec: BreakerSpec) -> Self {
        Self {
            failures: spec.failures.max(1),
            open_for: spec.open.nanos(),
            seen: AtomicU32::new(0),
            open_until: AtomicU64::new(0),
        }
    }

    pub(super) fn is_passable(&self, now: u64) -> bool {
        self.open_until.load(Ordering::Relaxed) <= now
    }

    /// Whoever comes first when the time is over is the one that tries; the others wait as long again.
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

    pub(super) fn learn(&self, good: bool, now: u64) {
        if good {
            // Read first: a store would take the cache line from the other workers on every request.
            if self.seen.load(Ordering::Relaxed) != 0 {
                self.seen.store(0, Ordering::Relaxed);
                self.open_until.store(0, Ordering::Relaxed);
            }
        } else if self.seen.fetch_add(1, Ordering::Relaxed) + 1 >= self.failures {
            self.open_until.store(now.saturating_add(self.open_for), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Span;

    #[test]
    fn it_opens_after_failures_in_a_row_tries_once_and_closes_on_success() {
        let breaker = Breaker::new(BreakerSpec { failures: 3, open: Span::secs(1) });
        let second = 1_000_000_000;
        breaker.learn(false, 1);
        breaker.learn(false, 2);
        breaker.learn(true, 3);
        breaker.learn(false, 4);
        breaker.learn(false, 5);
        assert!(breaker.admits(6), "two in a row are not three");
        breaker.learn(false, 10);
        assert!(!breaker.admits(10 + second - 1), "open");
        assert!(breaker.admits(10 + second), "one tries");
        assert!(!breaker.admits(10 + second), "and only one");
        breaker.learn(false, 11 + second);
        assert!(!breaker.admits(12 + second), "it failed: open again");
        assert!(breaker.admits(11 + 2 * second));
        breaker.learn(true, 12 + 2 * second);
        assert!(breaker.admits(13 + 2 * second) && breaker.admits(13 + 2 * second), "closed");
    }
}
