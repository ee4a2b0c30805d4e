//! The clock of the mock: monotonic, with an offset to the wall clock.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// The kernel's monotonic clock, which `timerfd` uses too, and its offset to the wall clock, read
/// once at the start.
///
/// Every wall-clock time in the log is a monotonic reading plus that offset. So steps of the wall
/// clock have no effect, and differences between logged times are exact durations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    monotonic: ClockId,
    unix_minus_monotonic: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let monotonic = ClockId::CLOCK_MONOTONIC;
        // The midpoint of two monotonic readings is closest to the time of the wall-clock reading.
        let before = read(monotonic);
        let unix = read(ClockId::CLOCK_REALTIME);
        let after = read(monotonic);
        Self { monotonic, unix_minus_monotonic: unix.saturating_sub(before.midpoint(after)) }
    }

    /// Monotonic time in nanoseconds.
    pub(crate) fn now(self) -> u64 {
        read(self.monotonic)
    }

    /// The age of a reading of the wall clock, in nanoseconds.
    pub(crate) fn age(reading: TimeSpec) -> u64 {
        read(ClockId::CLOCK_REALTIME).saturating_sub(nanos(reading))
    }

    /// The wall-clock time of a monotonic reading, in nanoseconds since 1970 UTC.
    pub(crate) const fn unix(self, monotonic: u64) -> u64 {
        self.unix_minus_monotonic.saturating_add(monotonic)
    }
}

/// Fails for unknown clocks only; these two exist on every Linux.
fn read(clock: ClockId) -> u64 {
    nanos(clock_gettime(clock).unwrap_or_else(|_| TimeSpec::new(0, 0)))
}

fn nanos(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
}
