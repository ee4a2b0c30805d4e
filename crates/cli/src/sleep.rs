//! A sleep of the main thread, with the same kernel timer that the engine uses.

use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use plimsoll_measure::Nanos;

/// Sleeps for a duration; not at all if the kernel provides no timer.
pub(crate) fn sleep(duration: Nanos) {
    let _ = try_sleep(duration);
}

fn try_sleep(duration: Nanos) -> nix::Result<()> {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?;
    // A duration of zero would disarm the timer, and the wait would never end.
    let nanos = i64::try_from(duration.as_u64()).unwrap_or(i64::MAX).max(1);
    timer.set(Expiration::OneShot(TimeSpec::nanoseconds(nanos)), TimerSetTimeFlags::empty())?;
    timer.wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{Clock as _, MonotonicClock};

    #[test]
    fn a_sleep_is_not_shorter_than_its_duration() {
        let clock = MonotonicClock::start();
        sleep(Nanos::from_millis(5));
        sleep(Nanos::ZERO);
        assert!(clock.now().as_nanos() >= 5_000_000);
    }
}
