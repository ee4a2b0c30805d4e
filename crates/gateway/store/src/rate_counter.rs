//! Two ways to count requests, as pure functions of time.
//!
//! Time is in nanoseconds from any start. Two workers may read the clock and then arrive in the
//! other order: a time before the last one counted is taken as that one, so that counts never go
//! back.

mod bucket;
mod sliding;

pub use bucket::TokenBucket;
pub use sliding::SlidingWindow;

use crate::{Algorithm, Decision, Limit};
use std::time::Duration;

/// The count of one key for one limit.
#[derive(Clone, Debug)]
pub enum RateCounter {
    /// See [`Algorithm::Sliding`].
    SlidingWindow(SlidingWindow),
    /// See [`Algorithm::Bucket`].
    TokenBucket(TokenBucket),
}

impl RateCounter {
    /// The count of a key that was never seen.
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sliding => Self::SlidingWindow(SlidingWindow::default()),
            Algorithm::Bucket => Self::TokenBucket(TokenBucket::default()),
        }
    }

    /// The decision for a request at this time; nothing is counted.
    pub fn peek(&self, limit: &Limit, now: u64) -> Decision {
        match self {
            Self::SlidingWindow(rate_counter) => rate_counter.peek(limit, now),
            Self::TokenBucket(rate_counter) => rate_counter.peek(limit, now),
        }
    }

    /// Counts a request that was admitted.
    pub fn charge(&mut self, limit: &Limit, now: u64) {
        match self {
            Self::SlidingWindow(rate_counter) => rate_counter.charge(limit, now),
            Self::TokenBucket(rate_counter) => rate_counter.charge(limit, now),
        }
    }

    /// Decides, and counts the request if it is admitted. Requests that are refused are not
    /// counted.
    pub fn check(&mut self, limit: &Limit, now: u64) -> Decision {
        let decision = self.peek(limit, now);
        if decision.allowed {
            self.charge(limit, now);
        }
        decision
    }
}

/// An admission with so much left after it.
fn admitted(limit: &Limit, remaining: u128, reset: u128) -> Decision {
    Decision {
        allowed: true,
        charge: 0,
        limit: limit.requests(),
        remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
        reset: duration(reset),
        retry_after: Duration::ZERO,
    }
}

fn refused(limit: &Limit, reset: u128, retry_after: u128) -> Decision {
    Decision {
        allowed: false,
        charge: 0,
        limit: limit.requests(),
        remaining: 0,
        reset: duration(reset),
        retry_after: duration(retry_after),
    }
}

fn duration(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
