//! The circuit breaker: a server that keeps failing gets no requests for some time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::config::upstream::BreakerSpec;

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

/// How a request was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The breaker is closed.
    Usual,
    /// As the trial of an open breaker, which stays open for other requests until this time.
    Trial(u64),
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

    /// Whether it would admit a request, without changing state.
    pub(super) fn may_admit(&self, now: u64) -> bool {
        self.open_until.load(Ordering::Relaxed) <= now
    }

    /// Whether it admits this request. The first one after `open_until` is the trial; for others
    /// the breaker stays open for the same time again.
    pub(super) fn admits(&self, now: u64) -> Option<Admission> {
        let until = self.open_until.load(Ordering::Relaxed);
        if until == 0 {
            return Some(Admission::Usual);
        }
        let again = now.saturating_add(self.open_for);
        let is_trial = until <= now
            && self
                .open_until
                .compare_exchange(until, again, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        is_trial.then_some(Admission::Trial(again))
    }

    /// A trial that its client cancelled is undecided: the next request is the trial.
    pub(super) fn undecided(&self, admission: Admission, now: u64) {
        if let Admission::Trial(until) = admission {
            // Fails if another result was recorded meanwhile.
            let _ = self.open_until.compare_exchange(
                until,
                now.max(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    pub(super) fn record(&self, success: bool, now: u64) {
        if success {
            // Read first: a store would invalidate the cache line of other workers on every
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
    use crate::config::units::HumanDuration;

    #[test]
    fn it_opens_after_failures_in_a_row_admits_one_trial_and_closes_on_success() {
        let breaker = Breaker::new(BreakerSpec { failures: 3, open: HumanDuration::secs(1) });
        let second = 1_000_000_000;
        breaker.record(false, 1);
        breaker.record(false, 2);
        breaker.record(true, 3);
        breaker.record(false, 4);
        breaker.record(false, 5);
        let admits = |now| breaker.admits(now).is_some();
        assert!(admits(6), "two in a row are not three");
        breaker.record(false, 10);
        assert!(!admits(10 + second - 1), "open");
        assert!(admits(10 + second), "one trial");
        assert!(!admits(10 + second), "and only one");
        breaker.record(false, 11 + second);
        assert!(!admits(12 + second), "it failed: open again");
        assert!(admits(11 + 2 * second));
        breaker.record(true, 12 + 2 * second);
        assert!(admits(13 + 2 * second) && admits(13 + 2 * second), "closed");
    }

    #[test]
    fn a_trial_that_decided_nothing_is_made_again() {
        let breaker = Breaker::new(BreakerSpec { failures: 1, open: HumanDuration::secs(1) });
        let second = 1_000_000_000;
        breaker.record(false, 1);
        let trial = breaker.admits(2 * second).unwrap();
        assert_eq!(breaker.admits(2 * second + 1), None);
        breaker.undecided(trial, 2 * second + 2);
        let again = breaker.admits(2 * second + 2).unwrap();
        assert_ne!(again, Admission::Usual, "it is open still");
        breaker.record(true, 2 * second + 3);
        breaker.undecided(again, 2 * second + 4);
        assert_eq!(breaker.admits(2 * second + 5), Some(Admission::Usual), "it was decided");
    }
}
