//! The gateway's clocks.

use nix::time::{ClockId, clock_gettime};
use plimsoll_gateway_store::Moment;

/// The kernel's monotonic clock, in nanoseconds.
pub(crate) fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The wall clock, in milliseconds since 1970 UTC: for time stamps in rows, never for durations.
pub(crate) fn unix_ms() -> u64 {
    read(ClockId::CLOCK_REALTIME) / 1_000_000
}

/// The time on both clocks.
pub(crate) fn moment() -> Moment {
    Moment { now: now(), unix_ms: unix_ms() }
}

/// `clock_gettime` fails for unknown clocks only; these two exist on every Linux.
fn read(clock: ClockId) -> u64 {
    let Ok(time) = clock_gettime(clock) else { return 0 };
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
}
