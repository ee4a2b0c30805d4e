//! The run's clock, as a worker reads it.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_measure::{Clock, Moment, MonotonicClock};

#[cfg(test)]
use crate::simulation_tests::{Simulated, Simulation};

/// The run's clock and its latest reading.
///
/// Reading the clock costs some twenty nanoseconds. Code that needs the time only to within the
/// current poll of a task, and measures nothing by it, takes the latest reading.
#[derive(Clone, Debug)]
pub(crate) struct WorkerClock {
    source: TimeSource,
    latest: Rc<Cell<Moment>>,
}

/// Where the time comes from. Outside of unit tests there is one variant, so that matching it costs
/// nothing.
#[derive(Clone, Debug)]
enum TimeSource {
    Monotonic(MonotonicClock),
    #[cfg(test)]
    Simulation(Rc<Simulation>),
}

impl WorkerClock {
    pub(crate) fn new(clock: MonotonicClock) -> Self {
        let latest = Rc::new(Cell::new(clock.now()));
        Self { source: TimeSource::Monotonic(clock), latest }
    }

    /// A clock that shows virtual time.
    #[cfg(test)]
    pub(crate) fn simulated(simulation: Rc<Simulation>) -> Self {
        let latest = Rc::new(Cell::new(simulation.now()));
        Self { source: TimeSource::Simulation(simulation), latest }
    }

    /// The latest reading.
    pub(crate) fn latest(&self) -> Moment {
        self.latest.get()
    }
}

impl Clock for WorkerClock {
    fn now(&self) -> Moment {
        let now = match &self.source {
            TimeSource::Monotonic(clock) => clock.now(),
            #[cfg(test)]
            TimeSource::Simulation(simulation) => simulation.now(),
        };
        self.latest.set(now);
        now
    }
}

#[cfg(test)]
impl Simulated for WorkerClock {
    fn simulation(&self) -> Option<&Rc<Simulation>> {
        match &self.source {
            TimeSource::Monotonic(_) => None,
            TimeSource::Simulation(simulation) => Some(simulation),
        }
    }
}
