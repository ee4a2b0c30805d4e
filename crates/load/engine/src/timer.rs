//! Sleeping to the nanosecond.
//!
//! tokio's own timer has a grain of a millisecond, which would bunch arrivals. One `timerfd` per worker
//! is armed for the earliest of all deadlines; the kernel's high-resolution timers wake it.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::task::{Poll, Waker};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use plimsoll_measure::{Clock, Moment, Nanos};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// At most this part of a wait is spent spinning: a tenth, whatever the rate of deadlines.
const SPIN_SHARE: u64 = 10;

/// The descriptor, as tokio wants to see it.
#[derive(Debug)]
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// The deadlines of one worker.
#[derive(Debug)]
pub(crate) struct Timer<C> {
    clock: C,
    fd: AsyncFd<Descriptor>,
    /// How long before a deadline the worker stops sleeping and spins, at most.
    spin: Nanos,
    /// How long it does so before the deadline that is armed.
    lead: Cell<Nanos>,
    deadlines: RefCell<BinaryHeap<Reverse<Deadline>>>,
    armed: Cell<Option<Moment>>,
    next_id: Cell<u64>,
}

#[derive(Debug)]
struct Deadline {
    at: Moment,
    /// Makes equal deadlines wake in the order in which they were asked for.
    id: u64,
    waker: Waker,
}

impl PartialEq for Deadline {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.id) == (other.at, other.id)
    }
}

impl Eq for Deadline {}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.id).cmp(&(other.at, other.id))
    }
}

impl<C: Clock> Timer<C> {
    /// A timer on the current runtime.
    ///
    /// # Errors
    /// Where the kernel gives no `timerfd`.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, which the workspace forbids; what it asks for holds: the descriptor is owned"
    )]
    pub(crate) fn new(clock: C, spin: Nanos) -> io::Result<Self> {
        let fd = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        Ok(Self {
            clock,
            spin,
            lead: Cell::new(Nanos::ZERO),
            fd: AsyncFd::with_interest(Descriptor(fd), Interest::READABLE)?,
            deadlines: RefCell::default(),
            armed: Cell::new(None),
            next_id: Cell::new(0),
        })
    }

    /// Sleeps until a moment, and returns at once where it has passed.
    pub(crate) async fn sleep_until(&self, at: Moment) {
        let mut registered = false;
        poll_fn(|context| {
            if self.clock.now() >= at {
                return Poll::Ready(());
            }
            if !registered {
                registered = true;
                self.register(at, context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes sleepers for ever; runs as a task of its own on the worker.
    ///
    /// # Errors
    /// Where the kernel refuses to arm or read the `timerfd`.
    pub(crate) async fn drive(&self) -> io::Result<()> {
        loop {
            // Never read: setting it anew clears it, and edge-triggered events tell of every expiry once.
            self.fd.readable().await?.clear_ready();
            self.armed.set(None);
            self.spin_to_next();
            self.wake_due();
            self.arm()?;
        }
    }

    fn register(&self, at: Moment, waker: Waker) {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.deadlines.borrow_mut().push(Reverse(Deadline { at, id, waker }));
        // Arming fails only for a time out of range, which the relative time here never is.
        let _ = self.arm();
    }

    fn spin_to_next(&self) {
        let next = self.deadlines.borrow().peek().map(|Reverse(deadline)| deadline.at);
        let Some(next) = next.filter(|next| next.since(self.clock.now()) <= self.lead.get()) else {
            return;
        };
        while self.clock.now() < next {
            std::hint::spin_loop();
        }
    }

    fn wake_due(&self) {
        let now = self.clock.now();
        let mut deadlines = self.deadlines.borrow_mut();
        while deadlines.peek().is_some_and(|Reverse(deadline)| deadline.at <= now) {
            if let Some(Reverse(deadline)) = deadlines.pop() {
                deadline.waker.wake();
            }
        }
    }

    fn arm(&self) -> io::Result<()> {
        let Some(earliest) = self.deadlines.borrow().peek().map(|Reverse(deadline)| deadline.at)
        else {
            return Ok(());
        };
        if self.armed.get().is_some_and(|armed| armed <= earliest) {
            return Ok(());
        }
        self.armed.set(Some(earliest));
        let wait = earliest.since(self.clock.now());
        self.lead.set(self.spin.min(Nanos::new(wait.as_u64() / SPIN_SHARE)));
        // Zero would disarm it.
        let wait = wait.saturating_sub(self.lead.get()).to_duration().max(Duration::from_nanos(1));
        let expiration = Expiration::OneShot(TimeSpec::from_duration(wait));
        Ok(self.fd.get_ref().0.set(expiration, TimerSetTimeFlags::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use plimsoll_measure::MonotonicClock;
    use tokio::task::LocalSet;

    use super::*;

    /// Runs a test body on a runtime of its own, with a driven timer.
    fn with_timer<F: Future<Output = ()>>(
        body: impl FnOnce(Rc<Timer<MonotonicClock>>, MonotonicClock) -> F,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let clock = MonotonicClock::start();
            let timer = Rc::new(Timer::new(clock, Nanos::from_micros(20)).unwrap());
            let driver = Rc::clone(&timer);
            tokio::task::spawn_local(async move { driver.drive().await });
            body(timer, clock).await;
        });
    }

    #[test]
    fn sleepers_wake_in_the_order_of_their_deadlines_and_never_early() {
        with_timer(|timer, clock| async move {
            let start = clock.now();
            let woken = RefCell::new(Vec::new());
            let sleep = async |ms| {
                let at = start + Nanos::from_millis(ms);
                timer.sleep_until(at).await;
                assert!(clock.now() >= at);
                woken.borrow_mut().push(ms);
            };
            tokio::join!(sleep(3), sleep(1), sleep(2), sleep(2));
            assert_eq!(*woken.borrow(), [1, 2, 2, 3]);
        });
    }

    #[test]
    fn deadlines_far_below_a_millisecond_are_kept_apart() {
        with_timer(|timer, clock| async move {
            let mut lateness = Vec::new();
            for _ in 0..200 {
                let at = clock.now() + Nanos::from_micros(150);
                timer.sleep_until(at).await;
                lateness.push(clock.now().since(at).as_micros_f64());
            }
            lateness.sort_unstable_by(f64::total_cmp);
            // With a millisecond's grain the median would be hundreds of microseconds.
            assert!(lateness[100] < 300.0, "median lateness {} us", lateness[100]);
        });
    }

    #[test]
    fn a_moment_that_has_passed_does_not_sleep() {
        with_timer(|timer, clock| async move {
            timer.sleep_until(clock.now()).await;
            timer.sleep_until(Moment::EPOCH).await;
        });
    }
}
