//! Deadlines with nanosecond precision: one `timerfd` and one heap for each worker.
//!
//! tokio's own timer counts milliseconds, too coarse for the gaps of a stream.

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// What tokio wants to know of the descriptor.
#[derive(Debug)]
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// The deadlines of one worker.
#[derive(Debug)]
pub(crate) struct Timer {
    clock: Clock,
    descriptor: AsyncFd<Descriptor>,
    spin: u64,
    queue: RefCell<BinaryHeap<Reverse<Entry>>>,
    armed: Cell<u64>,
}

/// A deadline in the heap. It is stale, and passed over, when its alarm has been set to another one.
#[derive(Debug)]
struct Entry {
    deadline: u64,
    setting: Rc<Setting>,
}

/// What an alarm waits for.
#[derive(Debug)]
struct Setting {
    deadline: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

impl Timer {
    /// `spin`: how many nanoseconds before a deadline the worker stops sleeping and spins.
    ///
    /// # Errors
    /// The system's, for want of descriptors. Must be called on a runtime with I/O.
    #[expect(
        deprecated,
        reason = "its successor is an unsafe function, which this workspace forbids; what that one asks \
                  for holds: the descriptor is owned, and neither changes nor closes before"
    )]
    pub(crate) fn new(clock: Clock, spin: u64) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let descriptor = Descriptor(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        Ok(Self {
            clock,
            descriptor: AsyncFd::with_interest(descriptor, Interest::READABLE)?,
            spin,
            queue: RefCell::default(),
            armed: Cell::new(NEVER),
        })
    }

    /// Wakes alarms, for ever: to be spawned once on the worker. Ends on errors of the event queue
    /// alone.
    pub(crate) async fn run(&self) {
        while let Ok(mut ready) = self.descriptor.readable().await {
            // The descriptor is never read: setting it anew clears it, and tokio registers it
            // edge-triggered, so that every expiry is told once.
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

    /// A deadline that has passed already expires at once.
    fn arm(&self, deadline: u64) {
        self.armed.set(deadline);
        // Zero would disarm it.
        let at = deadline.saturating_sub(self.spin).max(1);
        let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
        // `now` is far below the 292 years that fit in the signed types of the system.
        let time = TimeSpec::new(
            i64::try_from(seconds).unwrap_or(i64::MAX),
            i64::try_from(nanos).unwrap_or_default(),
        );
        // It fails for times out of range alone, which TimeSpec::new does not make.
        let _ = self
            .descriptor
            .get_ref()
            .0
            .set(Expiration::OneShot(time), TimerSetTimeFlags::TFD_TIMER_ABSTIME);
    }

    fn enqueue(&self, deadline: u64, setting: &Rc<Setting>) {
        let entry = Entry { deadline, setting: Rc::clone(setting) };
        self.queue.borrow_mut().push(Reverse(entry));
        if deadline < self.armed.get() {
            self.arm(deadline);
        }
    }

    /// Waits for a moment of the monotonic clock.
    pub(crate) async fn sleep_until(self: &Rc<Self>, deadline: u64) {
        let alarm = Alarm::new(Rc::clone(self));
        poll_fn(|cx| alarm.poll_at(cx, deadline)).await;
    }
}

impl Entry {
    fn wake(&self) {
        if self.setting.deadline.get() == self.deadline {
            self.setting.deadline.set(NEVER);
            let waker = self.setting.waker.borrow_mut().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Waits for one deadline after another; dropped, it waits no more.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: Rc<Timer>,
    setting: Rc<Setting>,
}

impl Alarm {
    pub(crate) fn new(timer: Rc<Timer>) -> Self {
        let setting = Setting { deadline: Cell::new(NEVER), waker: RefCell::new(None) };
        Self { timer, setting: Rc::new(setting) }
    }

    /// Ready when the deadline has passed.
    pub(crate) fn poll_at(&self, cx: &Context<'_>, deadline: u64) -> Poll<()> {
        if self.timer.clock.now() >= deadline {
            self.setting.deadline.set(NEVER);
            return Poll::Ready(());
        }
        self.setting.remember(cx.waker());
        if self.setting.deadline.replace(deadline) != deadline {
            self.timer.enqueue(deadline, &self.setting);
        }
        Poll::Pending
    }
}

impl Setting {
    fn remember(&self, waker: &Waker) {
        match &mut *self.waker.borrow_mut() {
            Some(known) => known.clone_from(waker),
            empty => *empty = Some(waker.clone()),
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.setting.deadline.set(NEVER);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.deadline == other.deadline
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.deadline.cmp(&other.deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::{Builder, LocalOptions};

    const MS: u64 = 1_000_000;

    /// Runs on a runtime like a worker's.
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

    /// Sleeps so many milliseconds from now, all at once; returns them in the order of waking, each with
    /// its lateness in ns, which fails below zero.
    async fn sleep_all(timer: Rc<Timer>, clock: Clock, millis: [u64; 4]) -> Vec<(u64, u64)> {
        let start = clock.now();
        let woken = Rc::new(RefCell::new(Vec::new()));
        let sleeper = |ms: u64| {
            let (timer, woken) = (Rc::clone(&timer), Rc::clone(&woken));
            tokio::task::spawn_local(async move {
                timer.sleep_until(start + ms * MS).await;
                woken.borrow_mut().push((ms, clock.now().checked_sub(start + ms * MS).unwrap()));
            })
        };
        for task in millis.map(sleeper) {
            task.await.unwrap();
        }
        woken.take()
    }

    #[test]
    fn deadlines_are_kept_in_their_order_and_never_early() {
        for spin in [0, 200_000] {
            let woken = on_worker(spin, |timer, clock| sleep_all(timer, clock, [5, 1, 9, 3]));
            assert_eq!(woken.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [1, 3, 5, 9]);
            assert!(woken.iter().all(|(_, late)| *late < 500 * MS), "{woken:?}");
        }
    }

    #[test]
    fn the_grain_is_much_finer_than_a_millisecond() {
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
        // A timer of whole milliseconds would never come near; a crowded machine is late as well, but
        // not always.
        assert!(lateness[20] < 500_000, "a tenth was later than {} ns", lateness[20]);
    }

    #[test]
    fn an_alarm_can_be_set_anew_and_a_dropped_one_is_forgotten() {
        on_worker(0, async |timer, clock| {
            let start = clock.now();
            let forgotten = Alarm::new(Rc::clone(&timer));
            let alarm = Alarm::new(Rc::clone(&timer));
            poll_fn(|cx| {
                assert!(forgotten.poll_at(cx, start + MS).is_pending());
                assert!(alarm.poll_at(cx, start + 500 * MS).is_pending());
                Poll::Ready(())
            })
            .await;
            drop(forgotten);
            poll_fn(|cx| alarm.poll_at(cx, start + 4 * MS)).await;
            let waited = clock.now() - start;
            assert!((4 * MS..450 * MS).contains(&waited), "{waited} ns");
        });
    }
}
