//! Kernel receive time stamps, mapped to monotonic time.
//!
//! With `SO_TIMESTAMPNS` the kernel records when the network stack received a segment, and
//! `recvmsg` returns the time of the last segment of a read (socket(7); for TCP since Linux 4.18).
//! A busy generator reads later. With the user-space clock, the target would be blamed for this
//! delay. The difference, the *read lag*, is reported.
//!
//! The kernel's time is wall-clock time, which can be stepped. It is converted to an age at the
//! time of the read, and used only if both clocks ran alike since then. Reads in close succession
//! share a reading of the wall clock.

use std::cell::Cell;
use std::sync::Arc;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use plimsoll_measure::{Clock, Moment, Nanos};

use crate::look_times::LookTimes;

/// Largest change of the offset between two readings that does not count as a step. The two clocks
/// are read one after the other, and the thread can be interrupted in between.
const TOLERANCE: i128 = 20_000_000;
/// Time for which the offset of the two clocks is reused. They drift by less than a nanosecond
/// meanwhile, and a step of the wall clock is detected as elsewhere: from [`TOLERANCE`] on.
const RECENT: Nanos = Nanos::from_millis(1);
/// Maximum time between the readings of the two clocks for which their offset is reused; otherwise
/// the thread may have been interrupted between them.
const CLOSE: Nanos = Nanos::from_micros(5);

/// Arrival time of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxTime {
    /// Time at which the kernel received them, or at which they were read if it does not report
    /// that.
    pub at: Moment,
    /// Delay until they were read; `None` if the kernel does not report it.
    pub read_lag: Option<Nanos>,
    /// How much earlier than `at` the first of them may have arrived: the kernel reports only the
    /// arrival of the last segment of a read.
    pub first_earlier_by: Nanos,
    /// How much earlier than `at` the last of them may have arrived; zero with a kernel time stamp.
    pub last_earlier_by: Nanos,
}

impl RxTime {
    /// Bytes that all arrived at this moment and were read at once.
    pub const fn exact(at: Moment) -> Self {
        Self { at, read_lag: None, first_earlier_by: Nanos::ZERO, last_earlier_by: Nanos::ZERO }
    }
}

/// Determines when bytes arrived.
#[derive(Debug)]
pub struct RxClock<C> {
    clock: C,
    filter: Cell<OffsetFilter>,
    looks: Option<Arc<LookTimes>>,
    reads: Cell<ReadCounts>,
}

/// Reads of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Number of all reads.
    pub all: u64,
    /// Number of reads without a usable kernel time stamp.
    pub unstamped: u64,
}

impl<C: Clock> RxClock<C> {
    /// Creates a receive clock on the run's clock.
    pub fn new(clock: C) -> Self {
        let filter = Cell::new(OffsetFilter::new(clock.now()));
        Self { clock, filter, looks: None, reads: Cell::default() }
    }

    /// Creates a receive clock with the polls of the worker, which bound how much earlier than
    /// stamped bytes may have arrived.
    pub fn watched(clock: C, looks: Arc<LookTimes>) -> Self {
        Self { looks: Some(looks), ..Self::new(clock) }
    }

    /// Counts of the reads so far.
    pub const fn reads(&self) -> ReadCounts {
        self.reads.get()
    }

    /// The run's clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Arrival time of bytes that have just been read, from the kernel's time stamp.
    ///
    /// The wall clock is read before the run's clock. If the thread is interrupted between the two
    /// readings, the result is too late, but never later than the read itself.
    pub(crate) fn timestamp(&self, kernel_time: Option<TimeSpec>) -> RxTime {
        let now = self.clock.now();
        let Some(kernel_time) = kernel_time.and_then(unix_nanos) else {
            return self.read_at(now, None);
        };
        let mut filter = self.filter.get();
        if let Some(age) = filter.recent_age(now, kernel_time) {
            return self.read_at(now, Some(age));
        }
        let wall = clock_gettime(ClockId::CLOCK_REALTIME).ok().and_then(unix_nanos);
        let (before, now) = (now, self.clock.now());
        let age = wall.and_then(|wall| filter.age(before, now, wall, kernel_time));
        self.filter.set(filter);
        self.read_at(now, age)
    }

    /// When bytes arrived that are read at `now`, and whose last one is that old by the kernel's
    /// time stamp; `None` without one.
    pub fn read_at(&self, now: Moment, age: Option<Nanos>) -> RxTime {
        let ReadCounts { all, unstamped } = self.reads.get();
        let unstamped = unstamped + u64::from(age.is_none());
        self.reads.set(ReadCounts { all: all + 1, unstamped });
        let looks = self.looks.as_deref();
        let at = age.map_or(now, |age| now - age);
        if age.is_some() {
            let earlier = looks.map_or(Nanos::ZERO, |looks| looks.first_earlier_by(at, now));
            return RxTime { read_lag: age, first_earlier_by: earlier, ..RxTime::exact(at) };
        }
        let earlier = looks.map_or(Nanos::ZERO, |looks| looks.earlier_by(now));
        RxTime { first_earlier_by: earlier, last_earlier_by: earlier, ..RxTime::exact(at) }
    }
}

/// Decides whether a wall-clock time can be compared with the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OffsetFilter {
    /// Wall clock minus monotonic clock, in nanoseconds, at the last reading.
    offset: Option<i128>,
    /// Time since which both clocks have run alike.
    since: Moment,
    /// Time until which the offset may be reused.
    recent_until: Moment,
}

impl OffsetFilter {
    /// Creates a filter before the first reading of the wall clock; the run's clock shows `now`.
    const fn new(now: Moment) -> Self {
        Self { offset: None, since: now, recent_until: now }
    }

    /// The age of the kernel's time stamp at `now`, by the last reading of the wall clock; `None`
    /// if a new reading is needed, because the last one is too old or the age is implausible.
    fn recent_age(&self, now: Moment, kernel_time: u64) -> Option<Nanos> {
        let wall = i128::from(now.as_nanos()) + self.offset.filter(|_| now < self.recent_until)?;
        let age = wall - i128::from(kernel_time);
        let age = Nanos::new(u64::try_from(age).ok().filter(|_| age <= TOLERANCE)?);
        (age <= now.since(self.since)).then_some(age)
    }

    /// The age of the kernel's time stamp at `now`, if the wall clock showed `wall` between
    /// `before` and `now`; `None` if the wall clock was stepped since the time stamp.
    fn age(&mut self, before: Moment, now: Moment, wall: u64, kernel_time: u64) -> Option<Nanos> {
        self.recent_until = if now.since(before) <= CLOSE { now + RECENT } else { now };
        let offset = i128::from(wall) - i128::from(now.as_nanos());
        if self.offset.is_some_and(|before| (offset - before).abs() > TOLERANCE) {
            self.since = now;
        }
        self.offset = Some(offset);
        let age = Nanos::new(wall.checked_sub(kernel_time)?);
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

    fn filter() -> OffsetFilter {
        OffsetFilter::new(Moment::EPOCH)
    }

    /// An age by clocks that are read at the same time.
    fn age(filter: &mut OffsetFilter, now: Moment, wall: u64, kernel: u64) -> Option<Nanos> {
        filter.age(now, now, wall, kernel)
    }

    #[test]
    fn the_age_is_that_of_the_wall_clock() {
        let mut filter = filter();
        assert_eq!(age(&mut filter, at(100), wall(100), wall(97)), Some(Nanos::from_millis(3)));
        assert_eq!(
            age(&mut filter, at(5_000), wall(5_000), wall(4_000)),
            Some(Nanos::from_secs(1))
        );
    }

    #[test]
    fn a_time_before_a_step_of_the_wall_clock_is_rejected_in_either_direction() {
        for stepped in [wall(5_200), wall(3_200)] {
            let mut filter = filter();
            assert!(age(&mut filter, at(4_000), wall(4_000), wall(3_999)).is_some());
            // Stepped by a second between the receipt (at 4,199) and the read (at 4,200).
            assert_eq!(age(&mut filter, at(4_200), stepped, wall(4_199)), None, "{stepped}");
            // A time after the step is accepted.
            let later = stepped + 10_000_000;
            assert_eq!(
                age(&mut filter, at(4_210), later, later - 1_000_000),
                Some(Nanos::from_millis(1))
            );
        }
    }

    #[test]
    fn a_time_in_the_future_is_rejected() {
        assert_eq!(age(&mut filter(), at(10), wall(10), wall(11)), None);
    }

    #[test]
    fn reads_that_follow_closely_share_a_reading_of_the_wall_clock() {
        let us = Nanos::from_micros;
        let mut filter = filter();
        assert_eq!(filter.recent_age(at(100), wall(99)), None, "nothing was read yet");
        age(&mut filter, at(100), wall(100), wall(97));
        // Half a millisecond later the wall clock has advanced as much.
        let soon = at(100) + us(500);
        assert_eq!(filter.recent_age(soon, wall(98)), Some(us(2_500)));
        assert_eq!(filter.recent_age(at(101), wall(98)), None, "read too long ago");
        // By this reading the stamps are in the future, or so old that a step may be the cause.
        for kernel in [wall(101), wall(80)] {
            assert_eq!(filter.recent_age(soon, kernel), None, "{kernel}");
        }
    }

    #[test]
    fn a_reading_that_was_interrupted_is_not_used_again() {
        let mut filter = filter();
        // Ten milliseconds passed between the readings of the two clocks.
        filter.age(at(100), at(110), wall(100), wall(97));
        assert_eq!(filter.recent_age(at(110), wall(97)), None);
        age(&mut filter, at(111), wall(111), wall(110));
        assert_eq!(filter.recent_age(at(111), wall(97)), Some(Nanos::from_millis(14)));
    }
}
