//! Rate limits and decisions.

use crate::{LimitKey, StoreError};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::time::Duration;

/// The most limits that one request can be checked against at once.
pub const MAX_CHARGES: usize = 8;

/// The algorithm that counts requests.
///
/// [`SlidingWindow`](crate::SlidingWindow) documents the error of the sliding window. A bucket has
/// as many tokens as the limit, refilled evenly over the window: a full burst at once, then a
/// steady rate; at most twice the limit in any window.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// sliding window, counted in 31 slices, of which only the oldest is estimated
    #[default]
    Sliding,
    /// token bucket
    Bucket,
}

/// A number of requests per window.
///
/// A limit of zero cannot exist: zero in a configuration disables the layer, and no `Limit` is
/// built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    requests: NonZeroU32,
    /// Nanoseconds, never zero.
    window: u64,
    algorithm: Algorithm,
}

impl Limit {
    /// A number of requests per window.
    ///
    /// # Errors
    /// A window shorter than a millisecond or longer than 366 days.
    pub fn new(
        requests: NonZeroU32,
        window: Duration,
        algorithm: Algorithm,
    ) -> Result<Self, StoreError> {
        Ok(Self { requests, window: window_nanos(window)?, algorithm })
    }

    /// Requests in a window.
    pub const fn requests(&self) -> u32 {
        self.requests.get()
    }

    /// The window.
    pub const fn window(&self) -> Duration {
        Duration::from_nanos(self.window)
    }

    /// The window in nanoseconds, never zero.
    pub const fn window_nanos(&self) -> u64 {
        self.window
    }

    /// The counting algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Separates the counts of one key's limits. It excludes the number of requests, so that a
    /// reload that changes only the number keeps the counts.
    pub(crate) fn salt(&self) -> u64 {
        self.window.wrapping_mul(2) + self.algorithm as u64
    }
}

/// Checks the window of a limit or a budget and returns its nanoseconds.
pub(crate) fn window_nanos(window: Duration) -> Result<u64, StoreError> {
    const LONGEST: Duration = Duration::from_hours(366 * 24);
    let fits = (Duration::from_millis(1)..=LONGEST).contains(&window);
    let nanos = u64::try_from(window.as_nanos()).ok().filter(|_| fits);
    nanos.ok_or(StoreError::Window(window))
}

/// One limit to check a request against, and the key to count.
///
/// The charges of one check must differ in key, window or algorithm: two that agree in all three
/// share one counter, and a request would be counted twice.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// The key that is counted.
    pub key: LimitKey<'a>,
    /// The limit.
    pub limit: &'a Limit,
}

/// A decision, in the terms of the `x-ratelimit-*` headers.
///
/// For several limits it reports the refusing one with the longest wait, or else the one with the
/// fewest requests left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request may pass.
    pub allowed: bool,
    /// The charge that this decision reports.
    pub charge: usize,
    /// The limit of that charge.
    pub limit: u32,
    /// Requests left in the window after this one.
    pub remaining: u32,
    /// Time without requests until the whole limit is available again.
    pub reset: Duration,
    /// Time until one request is admitted; zero if this one was.
    pub retry_after: Duration,
}

impl Decision {
    /// Admitted without counting: no limit applies, or the store is lost and open on loss.
    pub(crate) fn uncounted(charges: &[Charge<'_>]) -> Self {
        let limit = charges.iter().map(|charge| charge.limit.requests()).min().unwrap_or(u32::MAX);
        Self {
            allowed: true,
            charge: 0,
            limit,
            remaining: limit,
            reset: Duration::ZERO,
            retry_after: Duration::ZERO,
        }
    }

    /// Whether this decision is the one to report.
    pub(crate) fn outweighs(&self, other: &Self) -> bool {
        match (self.allowed, other.allowed) {
            (false, true) => true,
            (true, false) => false,
            (false, false) => self.retry_after > other.retry_after,
            (true, true) => self.remaining < other.remaining,
        }
    }
}
