//! Waiting, on the main thread alone, by the same kernel timer that the engine uses.

use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use plimsoll_measure::Nanos;

/// Waits for a length of time; not at all if the kernel gives no timer.
pub(crate) fn sleep(length: Nanos) {
    let _ = wait(length);
}

fn wait(length: Nanos) -> nix::Result<()> {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?;
    // A length of zero would disarm the timer, and the wait would never end.
    let nanos = i64::try_from(length.as_u64()).unwrap_or(i64::MAX).max(1);
    timer.set(Expiration::OneShot(TimeSpec::nanoseconds(nanos)), TimerSetTimeFlags::empty())?;
    timer.wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{Clock as _, MonotonicClock};

    #[test]
    fn a_pause_is_not_shorter_than_asked_for() {
        let clock = MonotonicClock::start();
        sleep(Nanos::from_millis(5));
        sleep(Nanos::ZERO);
        assert!(clock.now().as_nanos() >= 5_000_000);
    }
}
