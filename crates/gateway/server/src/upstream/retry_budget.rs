//! The retry budget, which keeps retries from overloading a failing upstream.

use std::sync::atomic::{AtomicU64, Ordering};

/// Retries that are always allowed in each window.
const FREE_RETRIES: f64 = 10.0;

/// Counts requests and retries of the current window; retries are limited to [`FREE_RETRIES`] and a
/// share of the requests.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    share: f64,
    window: AtomicU64,
    requests: AtomicU64,
    retries: AtomicU64,
}

/// Ten seconds, in nanoseconds.
const WINDOW: u64 = 10_000_000_000;

impl RetryBudget {
    pub(super) const fn new(share: f64) -> Self {
        Self {
            share,
            window: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            retries: AtomicU64::new(0),
        }
    }

    /// Counts the first attempt of a request.
    pub(crate) fn count_request(&self, now: u64) {
        let window = now / WINDOW;
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.requests.store(0, Ordering::Relaxed);
            self.retries.store(0, Ordering::Relaxed);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a retry from the budget; `false` if it is used up.
    pub(crate) fn try_retry(&self) -> bool {
        let allowed = FREE_RETRIES + self.share * self.requests.load(Ordering::Relaxed) as f64;
        self.retries
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |retries: u64| {
                ((retries as f64) < allowed).then_some(retries + 1)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_the_requests_and_a_few() {
        let budget = RetryBudget::new(0.2);
        (0..100).for_each(|_| budget.count_request(WINDOW));
        let granted = (0..1_000).filter(|_| budget.try_retry()).count();
        assert_eq!(granted, 30, "ten, and a fifth of a hundred");
        budget.count_request(2 * WINDOW);
        assert!(budget.try_retry(), "a new window");
    }
}
