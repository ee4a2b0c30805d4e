//! The loop watch: when the worker looks at its sockets, and when it did not for longer than it
//! should.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use plimsoll_measure::{LATE_READ, Moment, Nanos, Sample};
use plimsoll_transport::LookTimes;

use crate::aftermath::{Aftermath, Disturbances};
use crate::health::CpuTime;

/// The shortest time without a beat that is noted. An idle worker has one every [`BEAT`].
///
/// [`BEAT`]: plimsoll_transport::BEAT
const MIN_PAUSE: Nanos = Nanos::from_millis(3);
/// Pauses that are kept; beyond it the longest.
const MAX_PAUSES: usize = 256;
/// The longest time between readings of the worker's usage, which need system calls. It is also
/// read at the end of each pause.
const MAX_USE: Nanos = Nanos::from_millis(50);

/// A time in which the worker did not look at its sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    /// CPU time that the worker used in it, at most.
    pub(crate) busy: Nanos,
    /// Time that it was ready to run and had no CPU, at most.
    pub(crate) waited: Nanos,
}

impl Pause {
    pub(crate) const fn length(&self) -> Nanos {
        self.to.since(self.from)
    }
}

/// The pauses of one worker, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pauses {
    pub(crate) kept: Vec<Pause>,
    /// Shorter ones that were not kept.
    pub(crate) omitted: u64,
}

impl Pauses {
    /// Adds a pause; it prolongs the last one if it follows on it.
    fn add(&mut self, pause: Pause) {
        if let Some(last) = self.kept.last_mut().filter(|last| last.to >= pause.from) {
            last.to = pause.to;
            last.busy += pause.busy;
            last.waited += pause.waited;
            return;
        }
        self.kept.push(pause);
        if self.kept.len() > MAX_PAUSES {
            let shortest = (0..self.kept.len()).min_by_key(|&index| self.kept[index].length());
            self.kept.remove(shortest.unwrap_or_default());
            self.omitted += 1;
        }
    }
}

/// The worker's record of its own looks.
#[derive(Debug, Default)]
pub(crate) struct LoopWatch {
    pub(crate) looks: Arc<LookTimes>,
    state: RefCell<State>,
    /// Whether the beat has stopped.
    stopped: Cell<bool>,
    /// The task that beats, while it has stopped.
    waker: RefCell<Option<Waker>>,
}

#[derive(Debug, Default)]
struct State {
    pauses: Pauses,
    aftermath: Aftermath,
    /// Usage of the worker, and the time of the reading.
    used: CpuTime,
    used_at: Moment,
}

impl LoopWatch {
    /// A watch of the looks that an event loop notes.
    pub(crate) fn new(looks: Arc<LookTimes>) -> Self {
        Self { looks, ..Self::default() }
    }

    /// A request is scheduled now. It starts the beat again.
    #[inline]
    pub(crate) fn scheduled(&self, sample: &Sample, now: Moment) {
        let intended = sample.timeline.intended;
        if self.stopped.get() {
            self.start_again(intended, now);
        }
        if sample.is_arrival() && now.since(intended) > LATE_READ {
            self.state.borrow_mut().aftermath.late_arrival();
        }
    }

    #[cold]
    fn start_again(&self, intended: Moment, now: Moment) {
        self.stopped.set(false);
        let idle = now.since(self.looks.beats(now));
        self.state.borrow_mut().aftermath.idle(idle);
        // Without a beat, the late start shows the pause.
        if now.since(intended) >= MIN_PAUSE {
            self.add_pause(intended, now);
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// No request is in flight: the beat stops.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
    }

    /// Waits until a request is scheduled that starts it again.
    pub(crate) fn poll_started(&self, context: &Context<'_>) -> Poll<()> {
        if !self.stopped.get() {
            return Poll::Ready(());
        }
        self.waker.replace(Some(context.waker().clone()));
        Poll::Pending
    }

    /// The beat, with this number of requests in flight: notes whether the worker looked at its
    /// sockets
    /// since the last one.
    pub(crate) fn beat(&self, now: Moment, in_flight: u64, all: &Disturbances) {
        let before = self.looks.beats(now);
        if before > Moment::EPOCH && now.since(before) >= MIN_PAUSE {
            self.add_pause(before, now);
        } else if now.since(self.state.borrow().used_at) >= MAX_USE {
            self.state.borrow_mut().read_use(now);
        }
        self.state.borrow_mut().aftermath.beat(now, in_flight, all);
    }

    fn add_pause(&self, from: Moment, to: Moment) {
        let mut state = self.state.borrow_mut();
        let (busy, waited) = state.read_use(to);
        let length = to.since(from);
        let (busy, waited) = (busy.min(length), waited.min(length));
        state.pauses.add(Pause { from, to, busy, waited });
        state.aftermath.paused(from, to);
    }

    /// The pauses of the run.
    pub(crate) fn take_pauses(&self) -> Pauses {
        std::mem::take(&mut self.state.borrow_mut().pauses)
    }
}

impl State {
    /// CPU time and time without a CPU since the last reading.
    fn read_use(&mut self, now: Moment) -> (Nanos, Nanos) {
        let used = CpuTime::of_thread();
        let before = std::mem::replace(&mut self.used, used);
        self.used_at = now;
        (used.busy_since(&before), used.waited_since(&before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    fn pause(from: u64, to: u64) -> Pause {
        Pause { from: at(from), to: at(to), ..Pause::default() }
    }

    #[test]
    fn pauses_that_follow_on_one_another_are_one() {
        let mut pauses = Pauses::default();
        for (from, to) in [(10, 15), (15, 30), (40, 43)] {
            pauses.add(pause(from, to));
        }
        assert_eq!(pauses.kept, [pause(10, 30), pause(40, 43)]);
    }

    #[test]
    fn the_longest_pauses_are_kept_and_the_others_counted() {
        let mut pauses = Pauses::default();
        let lengths = (0..300_u64).map(|n| 2 + n * 7 % 300);
        for (n, length) in lengths.clone().enumerate() {
            let from = n as u64 * 1_000;
            pauses.add(pause(from, from + length));
        }
        let mut longest: Vec<_> = lengths.collect();
        longest.sort_unstable();
        let mut kept: Vec<_> =
            pauses.kept.iter().map(|pause| pause.length().as_u64() / 1_000_000).collect();
        kept.sort_unstable();
        assert_eq!(kept, longest[300 - MAX_PAUSES..]);
        assert_eq!(pauses.omitted, 300 - MAX_PAUSES as u64);
        assert!(pauses.kept.is_sorted_by_key(|pause| pause.from));
    }
}
