//! The budget of second attempts: a broken upstream is not hammered with retries.

use std::sync::atomic::{AtomicU64, Ordering};

/// Retries that may be spent whatever the traffic was.
const FLOOR: f64 = 10.0;

/// Counts requests and retries of the current ten seconds; no retry beyond the floor and a share.
#[derive(Debug)]
pub(crate) struct Retries {
    share: f64,
    window: AtomicU64,
    requests: AtomicU64,
    spent: AtomicU64,
}

const WINDOW: u64 = 10_000_000_000;

impl Retries {
    pub(super) const fn new(share: f64) -> Self {
        Self {
            share,
            window: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            spent: AtomicU64::new(0),
        }
    }

    /// A first attempt.
    pub(crate) fn count(&self, now: u64) {
        let window = now / WINDOW;
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.requests.store(0, Ordering::Relaxed);
            self.spent.store(0, Ordering::Relaxed);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a retry out of the budget; `false` if it is used up.
    pub(crate) fn spend(&self) -> bool {
        let allowed = FLOOR + self.share * self.requests.load(Ordering::Relaxed) as f64;
        let within = |spent: u64| ((spent as f64) < allowed).then_some(spent + 1);
        self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_the_requests_and_a_few() {
        let retries = Retries::new(0.2);
        (0..100).for_each(|_| retries.count(WINDOW));
        let granted = (0..1_000).filter(|_| retries.spend()).count();
        assert_eq!(granted, 30, "ten, and a fifth of a hundred");
        retries.count(2 * WINDOW);
        assert!(retries.spend(), "a new window");
    }
}
