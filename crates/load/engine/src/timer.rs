//! Sleeping with nanosecond precision.
//!
//! The precision of tokio's own timer is a millisecond, which would bunch arrivals. One `timerfd`
//! per worker is armed for the earliest of all deadlines; the kernel's high-resolution timers wake
//! it. Unit tests sleep in virtual time.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::task::{Poll, Waker};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use plimsoll_measure::{Clock as _, Moment, Nanos};
use plimsoll_transport::BEAT;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::WorkerClock;

#[cfg(test)]
use crate::simulation_tests::sleep_until;

/// The timer of one worker. Outside of unit tests there is one variant, so that matching it costs
/// nothing.
#[derive(Debug)]
pub(crate) enum Timer {
    Kernel(KernelTimer),
    #[cfg(test)]
    Simulated(WorkerClock),
}

impl Timer {
    /// A timer on the current runtime. The worker spins for at most `spin` before each deadline.
    ///
    /// # Errors
    /// Where the kernel gives no `timerfd`.
    pub(crate) fn new(clock: WorkerClock, spin: Nanos) -> io::Result<Self> {
        KernelTimer::new(clock, spin).map(Self::Kernel)
    }

    /// The clock by which it wakes.
    pub(crate) fn clock(&self) -> WorkerClock {
        match self {
            Self::Kernel(timer) => timer.clock.clone(),
            #[cfg(test)]
            Self::Simulated(clock) => clock.clone(),
        }
    }

    /// Sleeps until a moment, and returns at once where it has passed.
    pub(crate) async fn sleep_until(&self, at: Moment) {
        match self {
            Self::Kernel(timer) => timer.sleep_until(at).await,
            #[cfg(test)]
            Self::Simulated(clock) => sleep_until(clock, at).await,
        }
    }

    /// Lets the beat come every [`BEAT`], or no more.
    ///
    /// # Errors
    /// Where the kernel refuses to arm the `timerfd`.
    pub(crate) fn set_beating(&self, beating: bool) -> io::Result<()> {
        match self {
            Self::Kernel(timer) => timer.set_beating(beating),
            #[cfg(test)]
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Waits for the next beat, which wakes an idle worker.
    ///
    /// # Errors
    /// Where the kernel refuses to read the `timerfd`.
    pub(crate) async fn beat(&self) -> io::Result<()> {
        match self {
            Self::Kernel(timer) => timer.beat().await,
            #[cfg(test)]
            Self::Simulated(clock) => {
                sleep_until(clock, clock.now() + BEAT).await;
                Ok(())
            }
        }
    }

    /// Wakes sleepers for ever; runs as a task of the worker.
    ///
    /// # Errors
    /// Where the kernel refuses to arm or read the `timerfd`.
    pub(crate) async fn drive(&self) -> io::Result<()> {
        match self {
            Self::Kernel(timer) => timer.drive().await,
            // The simulation wakes its sleepers itself.
            #[cfg(test)]
            Self::Simulated(_) => Ok(()),
        }
    }
}

/// At most a tenth of a wait is spent spinning, whatever the rate of deadlines.
const SPIN_SHARE: u64 = 10;

#[expect(
    deprecated,
    reason = "its successor is unsafe, which the workspace forbids; its condition holds: the descriptor is owned"
)]
fn open_timerfd() -> io::Result<AsyncFd<Descriptor>> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
    AsyncFd::with_interest(Descriptor(fd), Interest::READABLE)
}

/// The descriptor in the form that tokio needs.
#[derive(Debug)]
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Deadlines that a `timerfd` wakes.
#[derive(Debug)]
pub(crate) struct KernelTimer {
    clock: WorkerClock,
    fd: AsyncFd<Descriptor>,
    /// Expires with every beat.
    beat: AsyncFd<Descriptor>,
    /// The longest time that the worker spins before a deadline.
    spin: Nanos,
    /// The time that it spins before the deadline that is armed.
    lead: Cell<Nanos>,
    deadlines: Deadlines,
    armed: Cell<Option<Moment>>,
}

impl KernelTimer {
    fn new(clock: WorkerClock, spin: Nanos) -> io::Result<Self> {
        Ok(Self {
            clock,
            spin,
            lead: Cell::new(Nanos::ZERO),
            fd: open_timerfd()?,
            beat: open_timerfd()?,
            deadlines: Deadlines::default(),
            armed: Cell::new(None),
        })
    }

    async fn sleep_until(&self, at: Moment) {
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

    fn set_beating(&self, beating: bool) -> io::Result<()> {
        let fd = &self.beat.get_ref().0;
        if !beating {
            return Ok(fd.unset()?);
        }
        let interval = Expiration::Interval(TimeSpec::from_duration(BEAT.to_duration()));
        Ok(fd.set(interval, TimerSetTimeFlags::empty())?)
    }

    async fn beat(&self) -> io::Result<()> {
        self.beat.readable().await?.clear_ready();
        // The kernel starts the next period when this one is read. The descriptor does not block.
        match self.beat.get_ref().0.wait() {
            Ok(()) | Err(Errno::EAGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn drive(&self) -> io::Result<()> {
        loop {
            // The descriptor is never read: setting it clears it, and edge-triggered events report
            // each expiry once.
            self.fd.readable().await?.clear_ready();
            self.armed.set(None);
            self.spin_to_next();
            self.deadlines.wake_due(self.clock.now());
            self.arm()?;
        }
    }

    fn register(&self, at: Moment, waker: Waker) {
        self.deadlines.push(at, waker);
        // Arming fails only for a time out of range, which the relative time here never is.
        let _ = self.arm();
    }

    fn spin_to_next(&self) {
        let Some(next) = self
            .deadlines
            .earliest()
            .filter(|next: &Moment| next.since(self.clock.now()) <= self.lead.get())
        else {
            return;
        };
        while self.clock.now() < next {
            std::hint::spin_loop();
        }
    }

    fn arm(&self) -> io::Result<()> {
        let Some(earliest) = self.deadlines.earliest() else { return Ok(()) };
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

// The deadlines of the tasks that sleep, earliest first.

/// Deadlines with the tasks to wake; equal ones in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: RefCell<BinaryHeap<Reverse<Deadline>>>,
    next_id: Cell<u64>,
}

#[derive(Debug)]
struct Deadline {
    at: Moment,
    /// Orders equal deadlines.
    id: u64,
    waker: Waker,
}

impl Deadlines {
    /// Adds a deadline.
    pub(crate) fn push(&self, at: Moment, waker: Waker) {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.heap.borrow_mut().push(Reverse(Deadline { at, id, waker }));
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&self) -> Option<Moment> {
        self.heap.borrow().peek().map(|Reverse(deadline)| deadline.at)
    }

    /// Wakes the tasks whose deadline has come.
    pub(crate) fn wake_due(&self, now: Moment) {
        let mut heap = self.heap.borrow_mut();
        while heap.peek().is_some_and(|Reverse(deadline)| deadline.at <= now) {
            if let Some(Reverse(deadline)) = heap.pop() {
                deadline.waker.wake();
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::Context;

    use plimsoll_measure::MonotonicClock;
    use tokio::task::LocalSet;

    use super::*;

    /// Runs a test body on a new runtime, with a driven timer.
    fn with_timer<F: Future<Output = ()>>(body: impl FnOnce(Rc<Timer>, WorkerClock) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let clock = WorkerClock::new(MonotonicClock::start());
            let timer = Rc::new(Timer::new(clock.clone(), Nanos::from_micros(20)).unwrap());
            let driver = Rc::clone(&timer);
            tokio::task::spawn_local(async move { driver.drive().await });
            body(timer, clock).await;
        });
    }

    #[test]
    fn sleepers_wake_in_the_order_of_their_deadlines_and_never_early() {
        with_timer(|timer, clock| async move {
            let start = clock.now();
            let woken: Rc<RefCell<Vec<char>>> = Rc::new(RefCell::new(Vec::new()));
            // Each in a task of its own: a late worker wakes several at once.
            let sleepers = [(3, 'a'), (1, 'b'), (2, 'c'), (2, 'd')].map(|(ms, name)| {
                let at = start + Nanos::from_millis(ms);
                let (timer, woken) = (Rc::clone(&timer), Rc::clone(&woken));
                tokio::task::spawn_local(sleep_and_note(timer, at, name, woken))
            });
            for sleeper in sleepers {
                sleeper.await.unwrap();
            }
            assert_eq!(*woken.borrow(), ['b', 'c', 'd', 'a']);
        });
    }

    async fn sleep_and_note(
        timer: Rc<Timer>,
        at: Moment,
        name: char,
        woken: Rc<RefCell<Vec<char>>>,
    ) {
        timer.sleep_until(at).await;
        assert!(timer.clock().now() >= at);
        woken.borrow_mut().push(name);
    }

    /// A timer with a precision of a millisecond wakes at its ticks. After one tick, a deadline 150
    /// us ahead is then met at the next tick: 850 us late, each time. A busy machine makes wake-ups
    /// late too, but not nine in ten of them.
    #[test]
    fn deadlines_far_below_a_millisecond_are_kept_apart() {
        with_timer(|timer, clock| async move {
            let mut lateness = Vec::new();
            for _ in 0..200 {
                let at = clock.now() + Nanos::from_micros(150);
                timer.sleep_until(at).await;
                lateness.push(clock.now().since(at));
            }
            lateness.sort_unstable();
            let (tenth, median) = (lateness[20], lateness[100]);
            assert!(tenth < Nanos::from_micros(300), "late by {tenth}, median {median}");
        });
    }

    #[test]
    fn a_moment_that_has_passed_does_not_sleep() {
        with_timer(|timer, clock| async move {
            let mut context = Context::from_waker(Waker::noop());
            for passed in [clock.now(), Moment::EPOCH] {
                let sleep = pin!(timer.sleep_until(passed));
                assert!(sleep.poll(&mut context).is_ready(), "{passed:?}");
            }
            let later = clock.now() + Nanos::from_secs(60);
            let sleep = pin!(timer.sleep_until(later));
            assert!(sleep.poll(&mut context).is_pending());
        });
    }
}
