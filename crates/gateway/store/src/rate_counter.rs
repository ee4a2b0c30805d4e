//! Two ways to count requests, as pure functions of time.
//!
//! Time is in nanoseconds from any start. Two workers may read the clock and then arrive in the
//! other order: a time before the last one counted is taken as that one, so that counts never go
//! back.

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

/// The bucket holds as many tokens as the limit and gains `limit / W` per unit of time.
///
/// In units of 1/W of a token everything is a whole number: a request takes W, a nanosecond gives
/// back `limit`, and the bucket is empty at a debt of `limit · W`. Nothing is rounded, so that no
/// rate drifts.
///
/// It is kept as a debt: the tokens taken and not yet refilled.
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

/// The window is cut into 31 slices. The last 31 count in full, the one before them by the part of
/// it that is still inside the window: it alone is taken as evenly spread.
///
/// 144 bytes per key. How far from the exact log: in any 30/31 of a window there are never more
/// than the limit, so that the rate over time stays below 1 + 1/30 of it. Within one whole window a
/// hostile client can reach almost twice the limit, once: a whole limit at the very end of a slice
/// is taken as spread over it, and is given again during the slice that is 31 later, not at its
/// end. The other way round, what came at the start of a slice is held against a client for up to
/// 1/31 of a window longer than it must. Requests that are refused are not counted. Slices are
/// aligned to the start of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlidingWindow {
    /// The newest slice with a place in the ring.
    slice: u64,
    /// Of all in the ring.
    total: u32,
    /// Of slice n at n modulo 32.
    counts: [u32; RING],
}

/// A time, as a slice and the position in it.
#[derive(Clone, Copy)]
struct Place {
    slice: u64,
    /// In 1/31 ns, below the window's nanoseconds: so that nothing is rounded.
    position: u64,
}

impl Place {
    fn new(limit: &Limit, now: u64) -> Self {
        let window = limit.window_nanos();
        // No overflow: a window is below 2^55 ns.
        let scaled = now % window * SLICES;
        Self { slice: now / window * SLICES + scaled / window, position: scaled % window }
    }

    /// Nanoseconds until a position in a slice that is `ahead` of this one, rounded up.
    fn until(self, ahead: u64, position: u64, limit: &Limit) -> u128 {
        let target = ahead * limit.window_nanos() + position;
        u128::from(target.saturating_sub(self.position).div_ceil(SLICES))
    }
}

impl SlidingWindow {
    /// Where a time is, not before the newest slice.
    fn place(&self, limit: &Limit, now: u64) -> Place {
        let place = Place::new(limit, now);
        if place.slice < self.slice { Place { slice: self.slice, position: 0 } } else { place }
    }

    /// The count of a slice; zero for one that is too old or in the future.
    fn count(&self, slice: u64) -> u32 {
        let known = slice <= self.slice && self.slice - slice <= SLICES;
        if known { self.counts[index(slice)] } else { 0 }
    }

    /// Of all from the slice that is leaving to this one.
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

    /// The time until nothing counts any more.
    fn reset(&self, place: Place, limit: &Limit) -> u128 {
        let ages = 0..=SLICES.min(place.slice);
        let age = ages.into_iter().find(|age| self.count(place.slice - age) > 0);
        age.map_or(0, |age| place.until(SLICES + 1 - age, 0, limit))
    }

    /// The time until there is room for one, when there is none now: the slices leave one by one.
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

/// The part of a slice with which `count` requests weigh no more than `free`: all of it if there
/// are none.
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
