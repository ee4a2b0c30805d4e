//! Waiting to the microsecond, for reference servers and for what happens to them.

use std::thread;
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};

/// The scheduler may wake a thread this much late; the rest is spent spinning.
const SPIN: Nanos = Nanos::from_micros(200);

/// Blocks the thread until a moment of the clock.
pub(crate) fn until(clock: &MonotonicClock, at: Moment) {
    loop {
        let left = at.since(clock.now());
        if left == Nanos::ZERO {
            return;
        }
        let sleep = left.saturating_sub(SPIN);
        if sleep == Nanos::ZERO {
            std::hint::spin_loop();
        } else {
            thread::park_timeout(sleep.to_duration());
        }
    }
}

/// Blocks the thread for a while, without spinning.
pub(crate) fn rest(length: Duration) {
    let clock = MonotonicClock::start();
    let end = clock.now() + Nanos::from(length);
    while clock.now() < end {
        thread::park_timeout(end.since(clock.now()).to_duration());
    }
}
