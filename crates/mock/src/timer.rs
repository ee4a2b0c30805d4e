//! Timers with nanosecond precision: one `timerfd` and one heap of deadlines for each worker.
//!
//! tokio's own timer counts milliseconds, which is too coarse for the gaps of a stream.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use derive_where::derive_where;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// Lets tokio poll the `timerfd`.
#[derive(Debug)]
struct TimerDescriptor(TimerFd);

impl AsRawFd for TimerDescriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// The deadlines of one worker.
#[derive(Debug)]
pub(crate) struct Timer {
    clock: Clock,
    descriptor: AsyncFd<TimerDescriptor>,
    spin: u64,
    queue: RefCell<BinaryHeap<Reverse<QueuedDeadline>>>,
    armed: Cell<u64>,
}

/// A deadline in the heap. It is stale, and ignored, if its alarm has been set to another deadline.
#[derive_where(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedDeadline {
    deadline: u64,
    #[derive_where(skip)]
    alarm: Rc<AlarmState>,
}

/// The deadline of an alarm and the waiting task.
#[derive(Debug)]
struct AlarmState {
    deadline: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

impl Timer {
    /// `spin`: nanoseconds before a deadline at which the worker stops sleeping and spins. Must be
    /// called on a runtime with I/O.
    ///
    /// # Errors
    /// The system has no descriptors left.
    #[expect(
        deprecated,
        reason = "its successor is an unsafe function, which this workspace forbids; that function's \
                  conditions hold: the descriptor is owned, and never changed or closed earlier"
    )]
    pub(crate) fn new(clock: Clock, spin: u64) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let descriptor = TimerDescriptor(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        Ok(Self {
            clock,
            descriptor: AsyncFd::with_interest(descriptor, Interest::READABLE)?,
            spin,
            queue: RefCell::default(),
            armed: Cell::new(NEVER),
        })
    }

    /// Wakes alarms until the event queue fails. Spawn it once on each worker.
    pub(crate) async fn run(&self) {
        while let Ok(mut ready) = self.descriptor.readable().await {
            // The descriptor is never read: setting it again clears it, and tokio registers it
            // edge-triggered, so every expiry is reported once.
            ready.clear_ready();
            self.spin_to_next();
            self.wake_due();
            self.rearm();
        }
    }

    fn spin_to_next(&self) {
        let next = self.queue.borrow().peek().map_or(NEVER, |Reverse(entry)| entry.deadline);
        if next.saturating_sub(self.clock.now()) <= self.spin {
            while self.clock.now() < next {
                std::hint::spin_loop();
            }
        }
    }

    fn wake_due(&self) {
        let now = self.clock.now();
        let mut queue = self.queue.borrow_mut();
        while queue.peek().is_some_and(|Reverse(entry)| entry.deadline <= now) {
            if let Some(Reverse(entry)) = queue.pop() {
                entry.wake();
            }
        }
    }

    fn rearm(&self) {
        self.armed.set(NEVER);
        let next = self.queue.borrow().peek().map(|Reverse(entry)| entry.deadline);
        if let Some(deadline) = next {
            self.arm(deadline);
        }
    }

    /// Sets the `timerfd`. A deadline in the past expires at once.
    fn arm(&self, deadline: u64) {
        self.armed.set(deadline);
        // Zero would disarm the `timerfd`.
        let at = deadline.saturating_sub(self.spin).max(1);
        let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
        // Monotonic times are far below the 292 years that fit in the system's signed types.
        let time = TimeSpec::new(
            i64::try_from(seconds).unwrap_or(i64::MAX),
            i64::try_from(nanos).unwrap_or_default(),
        );
        // Fails only for times out of range, which `TimeSpec::new` cannot produce.
        let _ = self
            .descriptor
            .get_ref()
            .0
            .set(Expiration::OneShot(time), TimerSetTimeFlags::TFD_TIMER_ABSTIME);
    }

    fn enqueue(&self, deadline: u64, alarm: &Rc<AlarmState>) {
        let entry = QueuedDeadline { deadline, alarm: Rc::clone(alarm) };
        self.queue.borrow_mut().push(Reverse(entry));
        if deadline < self.armed.get() {
            self.arm(deadline);
        }
    }

    /// Waits until `deadline` on the monotonic clock.
    pub(crate) async fn sleep_until(self: &Rc<Self>, deadline: u64) {
        let alarm = Alarm::new(Rc::clone(self));
        poll_fn(|cx| alarm.poll_at(cx, deadline)).await;
    }
}

impl QueuedDeadline {
    fn wake(&self) {
        if self.alarm.deadline.get() == self.deadline {
            self.alarm.deadline.set(NEVER);
            let waker = self.alarm.waker.borrow_mut().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Waits for one deadline at a time; a later one replaces it.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: Rc<Timer>,
    state: Rc<AlarmState>,
}

impl Alarm {
    pub(crate) fn new(timer: Rc<Timer>) -> Self {
        let state = AlarmState { deadline: Cell::new(NEVER), waker: RefCell::new(None) };
        Self { timer, state: Rc::new(state) }
    }

    /// Ready when the deadline has passed.
    pub(crate) fn poll_at(&self, cx: &Context<'_>, deadline: u64) -> Poll<()> {
        if self.timer.clock.now() >= deadline {
            self.state.deadline.set(NEVER);
            return Poll::Ready(());
        }
        self.state.set_waker(cx.waker());
        if self.state.deadline.replace(deadline) != deadline {
            self.timer.enqueue(deadline, &self.state);
        }
        Poll::Pending
    }
}

impl AlarmState {
    fn set_waker(&self, waker: &Waker) {
        match &mut *self.waker.borrow_mut() {
            Some(known) => known.clone_from(waker),
            empty => *empty = Some(waker.clone()),
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.state.deadline.set(NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::{Builder, LocalOptions};

    const MS: u64 = 1_000_000;

    /// Runs a test on a runtime like a worker's.
    fn on_worker<F: Future>(spin: u64, test: impl FnOnce(Rc<Timer>, Clock) -> F) -> F::Output {
        let runtime =
            Builder::new_current_thread().enable_io().build_local(LocalOptions::default()).unwrap();
        runtime.block_on(async {
            let clock = Clock::start();
            let timer = Rc::new(Timer::new(clock, spin).unwrap());
            let driver = Rc::clone(&timer);
            tokio::task::spawn_local(async move { driver.run().await });
            test(timer, clock).await
        })
    }

    /// Sleeps for each of `millis` at the same time. Returns them in the order of waking, each with
    /// its lateness in ns; panics if one wakes early.
    async fn sleep_all(timer: Rc<Timer>, clock: Clock, millis: [u64; 4]) -> Vec<(u64, u64)> {
        let start = clock.now();
        let woken = Rc::new(RefCell::new(Vec::new()));
        for task in millis.map(|ms| {
            let (timer, woken) = (Rc::clone(&timer), Rc::clone(&woken));
            tokio::task::spawn_local(async move {
                timer.sleep_until(start + ms * MS).await;
                woken.borrow_mut().push((ms, clock.now().checked_sub(start + ms * MS).unwrap()));
            })
        }) {
            task.await.unwrap();
        }
        woken.take()
    }

    #[test]
    fn sleepers_wake_in_order_and_never_early() {
        for spin in [0, 200_000] {
            let woken = on_worker(spin, |timer, clock| sleep_all(timer, clock, [5, 1, 9, 3]));
            assert_eq!(woken.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [1, 3, 5, 9]);
            assert!(woken.iter().all(|(_, late)| *late < 500 * MS), "{woken:?}");
        }
    }

    #[test]
    fn the_resolution_is_much_finer_than_a_millisecond() {
        let mut lateness = on_worker(0, async |timer, clock| {
            let mut found = Vec::new();
            for _ in 0..200 {
                let deadline = clock.now() + 150_000;
                timer.sleep_until(deadline).await;
                found.push(clock.now() - deadline);
            }
            found
        });
        lateness.sort_unstable();
        // A timer of whole milliseconds would always be later than this; a busy machine is late
        // too, but not always.
        assert!(lateness[20] < 500_000, "a tenth was later than {} ns", lateness[20]);
    }

    #[test]
    fn an_alarm_can_be_reset_and_a_dropped_alarm_never_wakes() {
        on_worker(0, async |timer, clock| {
            let start = clock.now();
            let dropped = Alarm::new(Rc::clone(&timer));
            let alarm = Alarm::new(Rc::clone(&timer));
            poll_fn(|cx| {
                assert!(dropped.poll_at(cx, start + MS).is_pending());
                assert!(alarm.poll_at(cx, start + 500 * MS).is_pending());
                Poll::Ready(())
            })
            .await;
            drop(dropped);
            poll_fn(|cx| alarm.poll_at(cx, start + 4 * MS)).await;
            let waited = clock.now() - start;
            assert!((4 * MS..450 * MS).contains(&waited), "{waited} ns");
        });
    }
}
