//! Virtual time, and the target that lives in it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use plimsoll_measure::{Clock, Moment};
use plimsoll_transport::LookTimes;

use super::script::ScriptedTarget;
use crate::deadlines::Deadlines;

/// A world whose time stands still while any task can run.
#[derive(Debug)]
pub(crate) struct Simulation {
    now: Cell<Moment>,
    deadlines: Deadlines,
    pub(crate) target: ScriptedTarget,
    /// When the simulated worker looked at its sockets.
    pub(crate) looks: Arc<LookTimes>,
    /// From when to when the worker does not run, in order.
    pauses: RefCell<VecDeque<(Moment, Moment)>>,
}

/// A clock that may show virtual time.
pub(crate) trait Simulated: Clock {
    /// The world whose time it shows.
    fn simulation(&self) -> Option<&Rc<Simulation>>;
}

/// Sleeps until a moment of virtual time, and returns at once where it has passed. As with the
/// timer of a real worker, whoever wakes has read the clock.
pub(crate) async fn sleep_until(clock: &impl Simulated, at: Moment) {
    let simulation = clock.simulation().expect("the clock shows virtual time");
    poll_fn(|context| {
        let is_past = simulation.is_past_or_wake(at, context);
        if is_past { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    assert!(clock.now() >= at);
}

impl Simulation {
    /// A world at the clock's epoch.
    pub(crate) fn new(target: ScriptedTarget) -> Rc<Self> {
        Rc::new(Self {
            now: Cell::new(Moment::EPOCH),
            deadlines: Deadlines::default(),
            target,
            looks: Arc::default(),
            pauses: RefCell::default(),
        })
    }

    /// Stops the worker between two moments, after those of the call before: whatever it waits for
    /// in that time wakes it at the end. The target goes on.
    pub(crate) fn pause(&self, from: Moment, to: Moment) {
        self.pauses.borrow_mut().push_back((from, to));
    }

    /// When a worker runs that wants to run at a moment.
    fn running(&self, at: Moment) -> Moment {
        let mut pauses = self.pauses.borrow_mut();
        while pauses.front().is_some_and(|(_, to)| *to <= at) {
            pauses.pop_front();
        }
        pauses.front().filter(|(from, _)| *from <= at).map_or(at, |(_, to)| *to)
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> Moment {
        self.now.get()
    }

    /// Whether a moment has passed. If not, the task is woken then.
    pub(crate) fn is_past_or_wake(&self, at: Moment, context: &Context<'_>) -> bool {
        let is_past = self.now.get() >= at;
        if !is_past {
            self.deadlines.push(at, context.waker().clone());
        }
        is_past
    }

    /// Moves the time to the next deadline; false if there is none.
    pub(crate) fn advance(&self) -> bool {
        let Some(next) = self.deadlines.earliest() else { return false };
        self.looks.sleeps(self.now.get(), None);
        self.now.set(self.running(next.max(self.now.get())));
        self.looks.wakes(self.now.get());
        self.deadlines.wake_due(self.now.get());
        true
    }
}
