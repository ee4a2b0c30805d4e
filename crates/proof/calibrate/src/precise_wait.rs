//! Waiting to the microsecond: for reference servers, and to see what this host's timer can do.

use std::thread;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};

use crate::error::CalibrateError;

/// The scheduler may wake a thread this much late; the rest is spent spinning.
const SPIN: Nanos = Nanos::from_micros(200);

/// Blocks the thread until a moment of the clock.
pub(crate) fn wait_until(clock: &MonotonicClock, at: Moment) {
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

/// When a thread that sleeps from one deadline to the next wakes, with `rate` deadlines per second
/// for some seconds: in seconds since the first deadline.
pub(crate) fn bare_timer_wakeups(rate: f64, seconds: f64) -> Result<Vec<f64>, CalibrateError> {
    let clock = MonotonicClock::start();
    let begin = clock.now() + Nanos::from_millis(10);
    let mut woken = Vec::new();
    for number in 0.. {
        let at = begin + Nanos::from_secs_f64(f64::from(number) / rate);
        if at >= begin + Nanos::from_secs_f64(seconds) {
            break;
        }
        while clock.now() < at {
            let left = TimeSpec::from_duration(at.since(clock.now()).to_duration());
            match clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty(), &left) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(CalibrateError::errno("cannot sleep")(errno)),
            }
        }
        woken.push(clock.now().since(begin).as_secs_f64());
    }
    Ok(woken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_once_for_each_deadline_and_never_early() {
        let woken = bare_timer_wakeups(200.0, 0.1).unwrap();
        assert_eq!(woken.len(), 20);
        for (number, at) in woken.iter().enumerate() {
            assert!(*at >= number as f64 / 200.0, "{number}: {at}");
        }
    }

    #[test]
    fn a_wait_never_ends_early() {
        let clock = MonotonicClock::start();
        let at = clock.now() + Nanos::from_millis(3);
        wait_until(&clock, at);
        assert!(clock.now() >= at);
        wait_until(&clock, Moment::EPOCH);
    }
}
