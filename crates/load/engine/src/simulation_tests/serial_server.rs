//! A target that does one thing at a time: accepts a connection, completes a TLS handshake, answers
//! a request.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use plimsoll_measure::{Clock as _, Moment, Nanos};
use tokio::task::spawn_local;

use super::world::sleep_until;
use crate::clock::WorkerClock;

/// What each thing costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Accepting a connection. It comes before anything else, and the client does not wait for it:
    /// the kernel has already completed the TCP handshake.
    pub(crate) accept: Nanos,
    /// A TLS handshake, in turn with requests. The client waits for it.
    pub(crate) handshake: Nanos,
    /// A request.
    pub(crate) request: Nanos,
    /// How long it does nothing, once, [`PAUSE_AT`] after the first connection.
    pub(crate) pause: Nanos,
}

/// When the pause begins.
const PAUSE_AT: Nanos = Nanos::from_millis(400);

/// The server. Its time passes while it works, whatever else happens.
#[derive(Debug)]
pub(crate) struct SerialServer {
    pub(crate) costs: Costs,
    accepts: Cell<u32>,
    jobs: RefCell<VecDeque<(Nanos, Rc<Job>)>>,
    working: Cell<bool>,
    /// When it does nothing.
    pause: Cell<Option<Moment>>,
    /// From when to when it does nothing besides, in order.
    stalls: RefCell<VecDeque<(Moment, Moment)>>,
}

/// Something that a client waits for.
#[derive(Debug, Default)]
struct Job {
    done: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl SerialServer {
    pub(crate) fn new(costs: Costs) -> Rc<Self> {
        Rc::new(Self {
            costs,
            accepts: Cell::new(0),
            jobs: RefCell::default(),
            working: Cell::new(false),
            pause: Cell::new(None),
            stalls: RefCell::default(),
        })
    }

    /// Stops the server between two moments, after those of the call before.
    pub(crate) fn stall(&self, from: Moment, to: Moment) {
        self.stalls.borrow_mut().push_back((from, to));
    }

    /// The end of the stall that goes on now.
    fn stalled(&self, now: Moment) -> Option<Moment> {
        let mut stalls = self.stalls.borrow_mut();
        while stalls.front().is_some_and(|(_, to)| *to <= now) {
            stalls.pop_front();
        }
        stalls.front().filter(|(from, _)| *from <= now).map(|(_, to)| *to)
    }

    /// Does nothing for a while, if it is time to.
    async fn pause(&self, clock: &WorkerClock) {
        if let Some(end) = self.stalled(clock.now()) {
            sleep_until(clock, end).await;
        }
        if self.pause.get().is_some_and(|pause| clock.now() >= pause) {
            self.pause.set(Some(Moment::EPOCH + Nanos::new(u64::MAX)));
            sleep_until(clock, clock.now() + self.costs.pause).await;
        }
    }

    /// A connection to accept.
    pub(super) fn connect(self: &Rc<Self>, clock: &WorkerClock) {
        self.accepts.set(self.accepts.get() + 1);
        self.pause.set(self.pause.get().or_else(|| Some(clock.now() + PAUSE_AT)));
        self.work(clock);
    }

    /// Waits until the server has done something of this cost.
    pub(super) async fn perform(self: &Rc<Self>, clock: &WorkerClock, cost: Nanos) {
        let job = Rc::new(Job::default());
        self.jobs.borrow_mut().push_back((cost, Rc::clone(&job)));
        self.work(clock);
        poll_fn(|context| {
            job.waker.replace(Some(context.waker().clone()));
            if job.done.get() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn work(self: &Rc<Self>, clock: &WorkerClock) {
        if self.working.replace(true) {
            return;
        }
        let (server, clock) = (Rc::clone(self), clock.clone());
        spawn_local(async move {
            server.do_all(&clock).await;
            server.working.set(false);
        });
    }

    /// Works until nothing is left to do.
    async fn do_all(&self, clock: &WorkerClock) {
        loop {
            self.pause(clock).await;
            if self.accepts.get() > 0 {
                self.accepts.set(self.accepts.get() - 1);
                sleep_until(clock, clock.now() + self.costs.accept).await;
                continue;
            }
            let Some((cost, job)) = self.jobs.borrow_mut().pop_front() else { break };
            sleep_until(clock, clock.now() + cost).await;
            job.done.set(true);
            if let Some(waker) = job.waker.take() {
                waker.wake();
            }
        }
    }
}
