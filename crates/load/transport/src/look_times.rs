//! When a worker looked at its sockets. That bounds how much earlier than stamped bytes may have
//! arrived (`docs/adr/0007-judged-by-effect.md`).

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_measure::{LATE_READ, Moment, Nanos};

/// The longest time between two looks of an idle worker: a beat of its own wakes it.
pub const BEAT: Nanos = Nanos::from_millis(1);

/// The looks of one worker at its sockets, as its event loop notes them.
///
/// A look is a call of `epoll_wait`. What a look reports arrived after the look before it. All
/// methods are for the worker's own thread; the fields are atomic because an event loop wants hooks
/// that can be sent.
#[derive(Debug, Default)]
pub struct LookTimes {
    /// When the worker last went to sleep: the beginning of its last look.
    slept: MomentCell,
    /// When it woke: the end of its last look.
    woke: MomentCell,
    /// The end of the look before.
    woke_before: MomentCell,
    /// When the beat was last handled, the time before that, and the time before that one.
    beats: [MomentCell; 3],
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
    /// The worker has nothing to do, and sleeps until something is to be read or done.
    pub fn sleeps(&self, now: Moment) {
        self.slept.set(now);
    }

    /// The worker wakes.
    pub fn wakes(&self, now: Moment) {
        self.woke_before.set(self.woke.get());
        self.woke.set(now);
    }

    /// The worker handles its beat. Returns when it handled the one before: in between was a look,
    /// also of a worker that never sleeps.
    pub fn beats(&self, now: Moment) -> Moment {
        let [last, second, third] = &self.beats;
        third.set(second.get());
        second.set(last.get());
        last.set(now);
        second.get()
    }

    /// A moment before which nothing arrived of what the last look reported: the end of the look
    /// before it. It is earlier for a worker that is too busy to sleep: it looks without waiting,
    /// and only its beat shows it. The look that reported the last beat was after the beat before,
    /// and so the look before that one was after the third beat.
    pub fn nothing_before(&self) -> Moment {
        self.woke_before.get().max(self.beats[2].get())
    }

    /// Whether the worker slept between two moments: it waited for something that was not its own
    /// doing. Only the last two sleeps are known.
    pub fn slept_between(&self, from: Moment, to: Moment) -> bool {
        [&self.woke, &self.woke_before].iter().any(|woke| woke.get() > from && woke.get() <= to)
    }

    /// How long the worker has not looked at its sockets, if that is longer than it should be.
    pub fn lateness(&self, now: Moment) -> Option<Nanos> {
        Some(now.since(self.nothing_before())).filter(|late| *late > BEAT + LATE_READ)
    }

    /// How much earlier than `at` the first bytes of a read may have arrived, if the kernel stamped
    /// the last of them with `at`, and they were read at `now`.
    pub fn first_earlier_by(&self, at: Moment, now: Moment) -> Nanos {
        let is_late = now.since(at) > LATE_READ || self.lateness(now).is_some();
        if is_late { at.since(self.nothing_before()) } else { Nanos::ZERO }
    }

    /// How much earlier than `now` bytes may have arrived that are read now, if the kernel does not
    /// say when they did. They wake a worker that sleeps; other delays are those of a worker that
    /// does something else.
    pub fn earlier_by(&self, now: Moment) -> Nanos {
        self.lateness(now).unwrap_or_else(|| {
            let before = self.slept.get().since(self.woke_before.get());
            before + now.since(self.woke.get())
        })
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

    /// An idle worker that its beat woke on time, at 1,000 and 2,000 us.
    fn idle() -> LookTimes {
        let looks = LookTimes::default();
        for (slept, woke) in [(10, 1_000), (1_010, 2_000)] {
            looks.sleeps(at(slept));
            looks.wakes(at(woke));
            looks.beats(at(woke));
        }
        looks
    }

    #[test]
    fn a_read_right_after_the_look_that_reported_it_is_exact() {
        let looks = idle();
        looks.sleeps(at(2_010));
        looks.wakes(at(2_500));
        assert_eq!(looks.first_earlier_by(at(2_480), at(2_520)), us(0));
        // Without a stamp: 10 us from the wake-up at 2,000 to sleep, and 20 from the next one.
        assert_eq!(looks.earlier_by(at(2_520)), us(30));
    }

    #[test]
    fn bytes_of_a_late_read_arrived_after_the_look_before_the_one_that_reported_them() {
        let looks = idle();
        looks.sleeps(at(2_010));
        looks.wakes(at(2_500));
        // Woken on time, and busy with something else for 400 us.
        assert_eq!(looks.first_earlier_by(at(2_490), at(2_900)), us(490));
        // Stopped in its sleep until 102,000: the last segment came shortly before, the first one
        // at any time since 2,500.
        looks.sleeps(at(2_510));
        looks.wakes(at(102_000));
        assert_eq!(looks.first_earlier_by(at(101_990), at(102_020)), us(101_990 - 2_500));
        assert_eq!(looks.earlier_by(at(102_020)), us(102_020 - 2_500));
        // The next read is on time again.
        looks.beats(at(102_050));
        looks.sleeps(at(102_100));
        looks.wakes(at(102_200));
        assert_eq!(looks.first_earlier_by(at(102_190), at(102_220)), us(0));
    }

    #[test]
    fn the_beats_of_a_worker_that_never_sleeps_show_that_it_looks() {
        let looks = idle();
        for beat in 3..=9 {
            looks.beats(at(beat * 1_000));
        }
        assert_eq!(looks.nothing_before(), at(7_000));
        assert_eq!(looks.first_earlier_by(at(8_900), at(9_400)), us(1_900));
    }

    #[test]
    fn a_sleep_between_two_moments_is_found() {
        let looks = idle();
        assert!(looks.slept_between(at(1_500), at(2_100)));
        assert!(looks.slept_between(at(500), at(1_100)));
        assert!(!looks.slept_between(at(2_000), at(2_100)));
    }
}
