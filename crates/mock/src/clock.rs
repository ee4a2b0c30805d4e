//! The clock of the mock: monotonic, with an offset to the wall clock.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Largest difference in nanoseconds between two readings that count as simultaneous.
const CLOSE: u64 = 5_000;

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
        let (now, unix) = both(monotonic);
        Self { monotonic, unix_minus_monotonic: unix.saturating_sub(now) }
    }

    /// Monotonic time in nanoseconds.
    pub(crate) fn now(self) -> u64 {
        read(self.monotonic)
    }

    /// A wall-clock reading as a monotonic time. The wall clock may have been stepped since the
    /// start; only the age of a reading is reliable.
    pub(crate) fn moment_of(self, reading: TimeSpec) -> u64 {
        let (now, unix) = both(self.monotonic);
        now.saturating_sub(unix.saturating_sub(nanos(reading)))
    }

    /// The wall-clock time of a monotonic reading, in nanoseconds since 1970 UTC.
    pub(crate) const fn unix(self, monotonic: u64) -> u64 {
        self.unix_minus_monotonic.saturating_add(monotonic)
    }
}

/// Simultaneous readings of the monotonic and the wall clock. The midpoint of two monotonic
/// readings is the best estimate for the wall-clock reading between them. If the thread was
/// descheduled there, it reads again.
fn both(monotonic: ClockId) -> (u64, u64) {
    let mut closest = (u64::MAX, 0, 0);
    for _ in 0..8 {
        let before = read(monotonic);
        let unix = read(ClockId::CLOCK_REALTIME);
        let after = read(monotonic);
        closest = closest.min((after.saturating_sub(before), before.midpoint(after), unix));
        if closest.0 < CLOSE {
            break;
        }
    }
    (closest.1, closest.2)
}

/// Fails for unknown clocks only; these two exist on every Linux.
fn read(clock: ClockId) -> u64 {
    nanos(clock_gettime(clock).unwrap_or_else(|_| TimeSpec::new(0, 0)))
}

fn nanos(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
}
