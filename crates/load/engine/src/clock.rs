//! The run's clock, as a worker reads it.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_measure::{Clock, Moment, MonotonicClock};

/// The run's clock, and what it said last.
///
/// A reading costs some twenty nanoseconds. Whatever needs to know the time to within the present poll of a task, but
/// measures nothing by it, takes the latest reading.
#[derive(Clone, Debug)]
pub(crate) struct WorkerClock {
    clock: MonotonicClock,
    latest: Rc<Cell<Moment>>,
}

impl WorkerClock {
    pub(crate) fn new(clock: MonotonicClock) -> Self {
        Self { clock, latest: Rc::new(Cell::new(clock.now())) }
    }

    /// The latest reading.
    pub(crate) fn latest(&self) -> Moment {
        self.latest.get()
    }
}

impl Clock for WorkerClock {
    fn now(&self) -> Moment {
        let now = self.clock.now();
        self.latest.set(now);
        now
    }
}
