//! Two ways to count requests, as pure functions of time.
//!
//! Time is in nanoseconds from any start. Two workers may read the clock and arrive in reverse
//! order: a time before the last counted one is replaced by it, so that counts never go back.

use std::time::Duration;

use crate::{Algorithm, Decision, Limit};

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

    /// Decides, and counts an admitted request. Refused requests are not counted.
    pub fn check(&mut self, limit: &Limit, now: u64) -> Decision {
        let decision = self.peek(limit, now);
        if decision.allowed {
            self.charge(limit, now);
        }
        decision
    }
}

/// An admission with this many requests left.
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

/// The bucket has as many tokens as the limit and gains `limit / W` per unit of time.
///
/// In units of 1/W of a token all numbers are whole: a request takes W, a nanosecond refills
/// `limit`, and the bucket is empty at a debt of `limit · W`. Without rounding, the rate cannot
/// drift.
///
/// The state is a debt: tokens taken and not yet refilled.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    debt: u128,
    at: u64,
}

impl TokenBucket {
    fn aged(self, limit: &Limit, now: u64) -> Self {
        let given = u128::from(now.saturating_sub(self.at)) * u128::from(limit.requests());
        Self { debt: self.debt.saturating_sub(given), at: now.max(self.at) }
    }

    /// The decision for a request at this time.
    pub fn peek(&self, limit: &Limit, now: u64) -> Decision {
        let debt = self.aged(limit, now).debt;
        let rate = u128::from(limit.requests());
        let token = u128::from(limit.window_nanos());
        let after = debt + token;
        match (rate * token).checked_sub(after) {
            Some(left) => admitted(limit, left / token, after.div_ceil(rate)),
            None => refused(limit, debt.div_ceil(rate), (after - rate * token).div_ceil(rate)),
        }
    }

    /// Counts a request.
    pub fn charge(&mut self, limit: &Limit, now: u64) {
        *self = self.aged(limit, now);
        self.debt += u128::from(limit.window_nanos());
    }
}

/// Slices of a window. One less than a power of two: with the slice that is leaving they fill the
/// ring.
const SLICES: u64 = 31;
const RING: usize = 32;

/// The window is cut into 31 slices. The last 31 count in full, and the one before them by its part
/// inside the window, assuming that its requests were evenly spread.
///
/// 144 bytes per key. Error against the exact log: any 30/31 of a window have at most the limit, so
/// the long-term rate stays below 1 + 1/30 of it. Within one whole window a hostile client can
/// reach almost twice the limit, once: a whole limit at the very end of a slice is treated as
/// spread over it, and is released during the slice that is 31 later, not at its end. Conversely,
/// requests at the start of a slice count for up to 1/31 of a window too long. Refused requests are
/// not counted. Slices are aligned to the start of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlidingWindow {
    /// The newest slice with a place in the ring.
    slice: u64,
    /// The sum of the ring.
    total: u32,
    /// Slice n is at index n modulo 32.
    counts: [u32; RING],
}

/// A time, as a slice and the position in it.
#[derive(Clone, Copy)]
struct Place {
    slice: u64,
    /// In 1/31 ns, below the window's nanoseconds, to avoid rounding.
    position: u64,
}

impl Place {
    fn new(limit: &Limit, now: u64) -> Self {
        let window = limit.window_nanos();
        // No overflow: a window is below 2^55 ns.
        let scaled = now % window * SLICES;
        Self { slice: now / window * SLICES + scaled / window, position: scaled % window }
    }

    /// Nanoseconds until a position in a slice that is `ahead` slices later, rounded up.
    fn until(self, ahead: u64, position: u64, limit: &Limit) -> u128 {
        let target = ahead * limit.window_nanos() + position;
        u128::from(target.saturating_sub(self.position).div_ceil(SLICES))
    }
}

impl SlidingWindow {
    /// The place of a time, not before the newest slice.
    fn place(&self, limit: &Limit, now: u64) -> Place {
        let place = Place::new(limit, now);
        if place.slice < self.slice { Place { slice: self.slice, position: 0 } } else { place }
    }

    /// The count of a slice; zero if it is too old or in the future.
    fn count(&self, slice: u64) -> u32 {
        let known = slice <= self.slice && self.slice - slice <= SLICES;
        if known { self.counts[index(slice)] } else { 0 }
    }

    /// The sum from the slice that is leaving to this one.
    fn total(&self, slice: u64) -> u32 {
        let gone = slice.saturating_sub(self.slice);
        if gone > SLICES {
            return 0;
        }
        let leaving = (1..=gone).map(|step| self.counts[index(self.slice + step)]);
        self.total - leaving.sum::<u32>()
    }

    /// The decision for a request at this time.
    pub fn peek(&self, limit: &Limit, now: u64) -> Decision {
        let place = self.place(limit, now);
        let leaving = place.slice.checked_sub(SLICES).map_or(0, |slice| self.count(slice));
        let total = self.total(place.slice);
        let taken = u64::from(total - leaving) + weight(leaving, limit, place.position);
        match u64::from(limit.requests()).checked_sub(taken) {
            Some(free @ 1..) => {
                admitted(limit, u128::from(free - 1), place.until(SLICES + 1, 0, limit))
            }
            _ => refused(limit, self.reset(place, limit), self.wait(place, total, limit)),
        }
    }

    /// The time until all slices have left the window.
    fn reset(&self, place: Place, limit: &Limit) -> u128 {
        let ages = 0..=SLICES.min(place.slice);
        let age = ages.into_iter().find(|age| self.count(place.slice - age) > 0);
        age.map_or(0, |age| place.until(SLICES + 1 - age, 0, limit))
    }

    /// The time until one request fits, if none does now: the slices leave one by one.
    fn wait(&self, place: Place, total: u32, limit: &Limit) -> u128 {
        let window = limit.window_nanos();
        let mut counted = total;
        for ahead in 0..=SLICES {
            let slice = (place.slice + ahead).checked_sub(SLICES);
            let leaving = slice.map_or(0, |slice| self.count(slice));
            counted -= leaving;
            if let Some(free @ 1..) = limit.requests().checked_sub(counted) {
                return place.until(ahead, window - share(free - 1, leaving, window), limit);
            }
        }
        place.until(SLICES + 1, 0, limit)
    }

    /// Counts a request.
    pub fn charge(&mut self, limit: &Limit, now: u64) {
        let slice = self.place(limit, now).slice;
        self.total = self.total(slice);
        for step in 1..=(slice - self.slice).min(RING as u64) {
            self.counts[index(self.slice + step)] = 0;
        }
        self.slice = slice;
        if let Some(total) = self.total.checked_add(1) {
            self.total = total;
            self.counts[index(slice)] += 1;
        }
    }
}

/// Remaining requests of the oldest slice, rounded up.
fn weight(count: u32, limit: &Limit, position: u64) -> u64 {
    let (window, count) = (limit.window_nanos(), u64::from(count));
    let left = window - position;
    // Division of 128 bits is slow and seldom needed.
    if let Some(product) = count.checked_mul(left) {
        return product.div_ceil(window);
    }
    let product = u128::from(count) * u128::from(left);
    u64::try_from(product.div_ceil(u128::from(window))).unwrap_or(count)
}

/// The largest part of a slice for which `count` requests weigh at most `free`; the whole slice for
/// zero requests.
fn share(free: u32, count: u32, window: u64) -> u64 {
    if count == 0 {
        return window;
    }
    let share = u128::from(free) * u128::from(window) / u128::from(count);
    u64::try_from(share).map_or(window, |share| share.min(window))
}

fn index(slice: u64) -> usize {
    usize::try_from(slice % RING as u64).unwrap_or(0)
}
