//! Virtual time, and the target that lives in it.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_measure::{Clock, Moment};

use super::script::ScriptedTarget;
use crate::deadlines::Deadlines;

/// A world whose time stands still while any task can run.
#[derive(Debug)]
pub(crate) struct Simulation {
    now: Cell<Moment>,
    deadlines: Deadlines,
    pub(crate) target: ScriptedTarget,
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
        Rc::new(Self { now: Cell::new(Moment::EPOCH), deadlines: Deadlines::default(), target })
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
        self.now.set(next.max(self.now.get()));
        self.deadlines.wake_due(self.now.get());
        true
    }
}
