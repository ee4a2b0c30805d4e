//! Times at which a worker polled its sockets. They bound how much earlier than their time stamp
//! bytes may have arrived (`docs/adr/0007-judged-by-effect.md`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_measure::{LATE_READ, Moment, Nanos};

/// Maximum time between two polls of a worker that waits for responses, because a timer (the beat)
/// wakes it. A beat costs up to 25 us of CPU time on a busy virtual machine; every millisecond,
/// that would be 2 % of a core.
pub const BEAT: Nanos = Nanos::from_millis(2);

/// The polls of one worker, as recorded by its event loop.
///
/// A poll is a call of `epoll_wait`. Data that a poll reports arrived after the previous poll. All
/// methods are for the worker's own thread; the fields are atomic because an event loop requires
/// `Send` hooks.
#[derive(Debug, Default)]
pub struct LookTimes {
    /// Time at which the worker last went to sleep: the start of its last poll.
    slept: MomentCell,
    /// Time spent waiting for a CPU: in total when it went to sleep, and in that sleep after it
    /// should have woken.
    waited: WaitedCells,
    /// Time at which it woke: the end of its last poll.
    woke: MomentCell,
    /// End of the previous poll.
    woke_before: MomentCell,
    /// End of the last valid poll before the current one; a wake-up may be without a poll.
    counted: MomentCell,
    /// Whether anything was read since the worker woke.
    has_read: AtomicBool,
    /// Whether the kernel did not report the arrival time of bytes.
    unstamped: AtomicBool,
    /// Times at which the last three beats were handled, the latest first.
    beats: [MomentCell; 3],
}

/// Time that the worker waited for a CPU.
#[derive(Debug, Default)]
struct WaitedCells {
    /// Total when it last went to sleep, in ns.
    before: AtomicU64,
    /// Time in its last sleep, in ns.
    asleep: AtomicU64,
    /// Whether the kernel reports it.
    is_known: AtomicBool,
}

#[derive(Debug, Default)]
struct MomentCell(AtomicU64);

impl MomentCell {
    fn get(&self) -> Moment {
        Moment::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, moment: Moment) {
        self.0.store(moment.as_nanos(), Ordering::Relaxed);
    }
}

impl LookTimes {
    /// Whether sleep times are needed: only for bytes without a kernel time stamp.
    pub fn needs_sleeps(&self) -> bool {
        self.unstamped.load(Ordering::Relaxed)
    }

    /// Records that the worker has nothing to do and sleeps until the next event. `waited`: total
    /// time it has waited for a CPU, if the kernel reports that.
    pub fn sleeps(&self, now: Moment, waited: Option<Nanos>) {
        self.slept.set(now);
        self.waited.is_known.store(waited.is_some(), Ordering::Relaxed);
        self.waited.before.store(waited.unwrap_or_default().as_u64(), Ordering::Relaxed);
    }

    /// Records the total time that the worker has waited for a CPU, after it woke.
    pub fn waited(&self, waited: Nanos) {
        let before = self.waited.before.load(Ordering::Relaxed);
        self.waited.asleep.store(waited.as_u64().saturating_sub(before), Ordering::Relaxed);
    }

    /// Records that the worker wakes. A process that was stopped wakes with `EINTR` (signal(7)),
    /// which is not a poll: the next poll reports the data that arrived meanwhile. So a late
    /// wake-up counts as a poll only if something was read after it.
    pub fn wakes(&self, now: Moment) {
        let was_late = self.woke.get().since(self.woke_before.get()) > BEAT + LATE_READ;
        let has_read = self.has_read.swap(false, Ordering::Relaxed);
        if has_read || !was_late {
            self.counted.set(self.woke.get());
        }
        self.woke_before.set(self.woke.get());
        self.woke.set(now);
    }

    /// Records that the worker handles its beat. Returns the time of the previous beat: a poll
    /// happened in between, even if the worker never sleeps.
    pub fn beats(&self, now: Moment) -> Moment {
        let [last, second, third] = &self.beats;
        third.set(second.get());
        second.set(last.get());
        last.set(now);
        second.get()
    }

    /// A moment before which no data of the last poll arrived: the end of the previous poll. It is
    /// earlier for a worker that is too busy to sleep, whose polls do not wait, so that only its
    /// beats show them. The poll that reported the last beat was after the previous beat, and so
    /// the poll before that one was after the third beat.
    pub fn nothing_before(&self) -> Moment {
        self.counted.get().max(self.beats[2].get())
    }

    /// When the worker last woke.
    pub fn woke(&self) -> Moment {
        self.woke.get()
    }

    /// Whether the worker slept between two moments, waiting for an event outside its control. Only
    /// the last two sleeps are known.
    pub fn slept_between(&self, from: Moment, to: Moment) -> bool {
        [&self.woke, &self.woke_before].iter().any(|woke| woke.get() > from && woke.get() <= to)
    }

    /// Time since the worker last polled its sockets, if that is longer than it should be.
    pub fn lateness(&self, now: Moment) -> Option<Nanos> {
        Some(now.since(self.nothing_before())).filter(|late| *late > BEAT + LATE_READ)
    }

    /// How much earlier than `at` the first bytes of a read may have arrived, if the kernel stamped
    /// the last of them with `at`, and they were read at `now`.
    pub fn first_earlier_by(&self, at: Moment, now: Moment) -> Nanos {
        self.has_read.store(true, Ordering::Relaxed);
        let is_late = now.since(at) > LATE_READ || self.lateness(now).is_some();
        if !is_late {
            return Nanos::ZERO;
        }
        at.since(self.nothing_before())
    }

    /// How much earlier than `now` bytes that are read now may have arrived, if the kernel does not
    /// report it. They wake a sleeping worker; other delays occur while the worker does something
    /// else, or waits for a CPU. If the kernel does not report that wait, the worker's beats show
    /// it, because they wait too.
    pub fn earlier_by(&self, now: Moment) -> Nanos {
        self.unstamped.store(true, Ordering::Relaxed);
        self.has_read.store(true, Ordering::Relaxed);
        self.lateness(now).unwrap_or_else(|| {
            let before = self.slept.get().since(self.woke_before.get());
            before + now.since(self.woke.get()) + self.waited_asleep()
        })
    }

    /// Maximum time that the worker waited for a CPU when it last woke.
    fn waited_asleep(&self) -> Nanos {
        if self.waited.is_known.load(Ordering::Relaxed) {
            Nanos::new(self.waited.asleep.load(Ordering::Relaxed))
        } else {
            self.beats_late_by()
        }
    }

    /// Maximum delay of the last beats.
    fn beats_late_by(&self) -> Nanos {
        let [last, second, third] = &self.beats;
        let longest = last.get().since(second.get()).max(second.get().since(third.get()));
        if third.get() == Moment::EPOCH { Nanos::ZERO } else { longest.saturating_sub(BEAT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Moment {
        Moment::EPOCH + Nanos::from_micros(us)
    }

    const fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    /// An idle worker, woken by its beat on time at 2,000 and 4,000 us.
    fn idle() -> LookTimes {
        let looks = LookTimes::default();
        for (slept, woke) in [(10, 2_000), (2_010, 4_000)] {
            looks.sleeps(at(slept), None);
            looks.wakes(at(woke));
            looks.beats(at(woke));
        }
        looks
    }

    #[test]
    fn a_read_right_after_the_look_that_reported_it_is_exact() {
        let looks = idle();
        looks.sleeps(at(4_010), None);
        looks.wakes(at(4_500));
        assert_eq!(looks.first_earlier_by(at(4_480), at(4_520)), us(0));
        // Without a time stamp: 10 us from the wake-up at 4,000 to sleep, and 20 from the next one.
        assert_eq!(looks.earlier_by(at(4_520)), us(30));
    }

    #[test]
    fn bytes_of_a_late_read_arrived_after_the_look_before_the_one_that_reported_them() {
        let looks = idle();
        looks.sleeps(at(4_010), None);
        looks.wakes(at(4_500));
        // Woken on time, then busy with something else for 400 us.
        assert_eq!(looks.first_earlier_by(at(4_490), at(4_900)), us(490));
        // Stopped in its sleep until 102,000: the last segment came shortly before, the first one
        // at any time since 4,500.
        looks.sleeps(at(4_510), None);
        looks.wakes(at(102_000));
        assert_eq!(looks.first_earlier_by(at(101_990), at(102_020)), us(101_990 - 4_500));
        assert_eq!(looks.earlier_by(at(102_020)), us(102_020 - 4_500));
        // The next read is on time again.
        looks.beats(at(102_050));
        looks.sleeps(at(102_100), None);
        looks.wakes(at(102_200));
        assert_eq!(looks.first_earlier_by(at(102_190), at(102_220)), us(0));
    }

    /// `epoll_wait` ends with `EINTR` when a stopped process continues (signal(7)).
    #[test]
    fn a_wake_up_without_a_look_hides_nothing() {
        let looks = idle();
        let woke = at(2_000).max(looks.woke.get());
        let after = |us: u64| woke + Nanos::from_micros(us);
        looks.sleeps(after(10), None);
        looks.wakes(after(200_000));
        looks.sleeps(after(200_010), None);
        looks.wakes(after(200_020));
        // The last segment came 7 ms before the process continued.
        assert_eq!(looks.first_earlier_by(after(193_000), after(200_030)), us(193_000));
        // The same without a kernel time stamp, and for events other than reads.
        assert_eq!(looks.earlier_by(after(200_030)), us(200_030));
        assert_eq!(looks.lateness(after(200_030)), Some(us(200_030)));
        // The next wake-up is a poll again.
        looks.sleeps(after(200_300), None);
        looks.wakes(after(200_900));
        assert_eq!(looks.first_earlier_by(after(200_890), after(200_910)), us(0));
        assert_eq!(looks.lateness(after(200_910)), None);
    }

    /// On a busy machine, it sleeps again and wakes only after some time.
    #[test]
    fn a_wake_up_without_a_look_is_none_however_long_the_next_one_takes() {
        let looks = idle();
        looks.sleeps(at(4_010), None);
        looks.wakes(at(54_000));
        looks.beats(at(54_010));
        looks.sleeps(at(54_500), None);
        looks.wakes(at(55_900));
        assert_eq!(looks.first_earlier_by(at(49_000), at(55_950)), us(45_000));
        // A wake-up with a read was a poll.
        looks.sleeps(at(56_000), None);
        looks.wakes(at(90_000));
        assert_eq!(looks.first_earlier_by(at(89_990), at(90_010)), us(89_990 - 55_900));
        looks.sleeps(at(90_020), None);
        looks.wakes(at(90_500));
        assert_eq!(looks.first_earlier_by(at(90_490), at(90_510)), us(0));
    }

    #[test]
    fn without_a_stamp_the_wait_for_a_cpu_is_that_of_the_beat() {
        let looks = idle();
        for (slept, woke) in [(4_010, 6_000), (6_010, 9_200), (9_210, 11_200)] {
            looks.sleeps(at(slept), None);
            looks.wakes(at(woke));
            looks.beats(at(woke));
        }
        looks.sleeps(at(11_210), None);
        looks.wakes(at(11_500));
        // 10 us until sleep, 20 since it woke; a beat came 1.2 ms late.
        assert_eq!(looks.earlier_by(at(11_520)), us(1_230));
    }

    /// Between two beats on time, it waited 1.5 ms for a CPU that another process used.
    #[test]
    fn without_a_stamp_the_wait_for_a_cpu_is_what_the_kernel_counted() {
        let looks = idle();
        looks.sleeps(at(4_010), Some(us(7_000)));
        looks.wakes(at(5_900));
        looks.waited(us(8_500));
        assert_eq!(looks.earlier_by(at(5_920)), us(10 + 20 + 1_500));
        // The next wake-up is on time.
        looks.beats(at(6_000));
        looks.sleeps(at(6_010), Some(us(8_500)));
        looks.wakes(at(6_500));
        looks.waited(us(8_500));
        assert_eq!(looks.earlier_by(at(6_520)), us(110 + 20));
    }

    #[test]
    fn the_beats_of_a_worker_that_never_sleeps_show_that_it_looks() {
        let looks = idle();
        for beat in 3..=9 {
            looks.beats(at(beat * 2_000));
        }
        assert_eq!(looks.nothing_before(), at(14_000));
        assert_eq!(looks.first_earlier_by(at(17_900), at(18_400)), us(3_900));
    }

    #[test]
    fn a_sleep_between_two_moments_is_found() {
        let looks = idle();
        assert!(looks.slept_between(at(3_500), at(4_100)));
        assert!(looks.slept_between(at(500), at(2_100)));
        assert!(!looks.slept_between(at(4_000), at(4_100)));
    }
}
