//! When bytes arrived, as the kernel saw it.
//!
//! With `SO_TIMESTAMPNS` the kernel notes when the network stack received a segment, and `recvmsg` hands the note of the
//! last segment of a read over (socket(7); for TCP since Linux 4.18). A busy generator reads later than that: by the
//! user-space clock this lateness would be charged to the target. The difference, the *read lag*, is published.
//!
//! The kernel's note is wall-clock time, which can be stepped. It is turned into an age at the moment of the read, and
//! believed only if it lies in a time over which the two clocks ran alike.

use std::cell::Cell;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use plimsoll_measure::{Clock, Moment, Nanos};

/// Largest change of the offset between two readings that is not a step: the two clocks are read one after the other,
/// and the thread may be held up in between.
const TOLERANCE: i128 = 20_000_000;

/// When bytes arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxTime {
    /// When the kernel received them, where it says so; else when they were read.
    pub at: Moment,
    /// How much later they were read; `None` where the kernel does not say.
    pub read_lag: Option<Nanos>,
}

/// Tells when bytes arrived.
#[derive(Debug)]
pub struct RxClock<C> {
    clock: C,
    believer: Cell<OffsetFilter>,
}

impl<C: Clock> RxClock<C> {
    /// A stamper on the run's clock.
    pub fn new(clock: C) -> Self {
        let believer = Cell::new(OffsetFilter { offset: None, since: clock.now() });
        Self { clock, believer }
    }

    /// The run's clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// When bytes arrived that have just been read, with the kernel's note about them.
    ///
    /// The wall clock is read first: a thread that is held up between the two readings then tells an arrival that is
    /// too late, but never later than the read itself.
    pub(crate) fn arrival(&self, note: Option<TimeSpec>) -> RxTime {
        let Some(note) = note.and_then(unix_nanos) else { return self.unstamped() };
        let wall = clock_gettime(ClockId::CLOCK_REALTIME).ok().and_then(unix_nanos);
        let Some(wall) = wall else { return self.unstamped() };
        let now = self.clock.now();
        let mut believer = self.believer.get();
        let age = believer.age(now, wall, note);
        self.believer.set(believer);
        RxTime { at: age.map_or(now, |age| now - age), read_lag: age }
    }

    fn unstamped(&self) -> RxTime {
        RxTime { at: self.clock.now(), read_lag: None }
    }
}

/// Decides whether a wall-clock note can be compared with the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OffsetFilter {
    /// Wall clock minus monotonic clock, in nanoseconds, at the last reading.
    offset: Option<i128>,
    /// The two have run alike since then.
    since: Moment,
}

impl OffsetFilter {
    /// How long before `now` (wall clock: `wall`) the note was made; `None` if the wall clock was stepped in between.
    fn age(&mut self, now: Moment, wall: u64, note: u64) -> Option<Nanos> {
        let offset = i128::from(wall) - i128::from(now.as_nanos());
        if self.offset.is_some_and(|before| (offset - before).abs() > TOLERANCE) {
            self.since = now;
        }
        self.offset = Some(offset);
        let age = Nanos::new(wall.checked_sub(note)?);
        (age <= now.since(self.since)).then_some(age)
    }
}

fn unix_nanos(time: TimeSpec) -> Option<u64> {
    let (secs, nanos) = (u64::try_from(time.tv_sec()).ok()?, u64::try_from(time.tv_nsec()).ok()?);
    secs.checked_mul(1_000_000_000)?.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    fn wall(ms: u64) -> u64 {
        DAY + ms * 1_000_000
    }

    fn believer() -> OffsetFilter {
        OffsetFilter { offset: None, since: Moment::EPOCH }
    }

    #[test]
    fn a_note_is_as_old_as_the_wall_clock_says() {
        let mut believer = believer();
        assert_eq!(believer.age(at(100), wall(100), wall(97)), Some(Nanos::from_millis(3)));
        assert_eq!(believer.age(at(5_000), wall(5_000), wall(4_000)), Some(Nanos::from_secs(1)));
    }

    #[test]
    fn a_note_from_before_a_step_of_the_wall_clock_is_not_believed_in_either_direction() {
        for stepped in [wall(5_200), wall(3_200)] {
            let mut believer = believer();
            assert!(believer.age(at(4_000), wall(4_000), wall(3_999)).is_some());
            // Stepped by a second between the note (at 4,199) and the read (at 4,200).
            assert_eq!(believer.age(at(4_200), stepped, wall(4_199)), None, "{stepped}");
            // A note in the new time is believed as soon as it is younger than the step.
            let later = stepped + 10_000_000;
            assert_eq!(
                believer.age(at(4_210), later, later - 1_000_000),
                Some(Nanos::from_millis(1))
            );
        }
    }

    #[test]
    fn a_note_of_the_future_is_not_believed() {
        assert_eq!(believer().age(at(10), wall(10), wall(11)), None);
    }
}
