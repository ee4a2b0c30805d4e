//! Where a pacer takes its arrivals from, and the room that they have.

use std::cell::{Cell, RefCell};
use std::iter::Peekable;
use std::rc::Rc;

use plimsoll_measure::Moment;
use plimsoll_schedule::{Arrival, ArrivalIter, PairedArrivals};

use crate::in_flight_limit::InFlightLimit;

/// The arrivals that one pacer dispatches: all of a worker, or those on one target of a comparison,
/// so that a target that is full holds up no other one.
#[derive(Debug)]
pub(crate) struct ArrivalSource {
    /// None where other workers have all slots of the open model.
    arrivals: RefCell<Option<Peekable<ArrivalStream>>>,
    pub(crate) limit: Rc<InFlightLimit>,
    /// Whether the pacer waits for a permit.
    pub(crate) waits: Cell<bool>,
    /// Its target was taken out of the comparison: nothing is started here or later.
    pub(crate) end: Cell<Moment>,
}

/// The arrivals of a run, or of a comparison.
#[derive(Debug)]
pub(crate) enum ArrivalStream {
    Single(ArrivalIter),
    Paired(Box<PairedArrivals>),
}

impl Iterator for ArrivalStream {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match self {
            Self::Single(arrivals) => arrivals.next(),
            Self::Paired(arrivals) => arrivals.next(),
        }
    }
}

impl ArrivalSource {
    /// A source of these arrivals.
    pub(crate) fn new(arrivals: Option<ArrivalStream>, limit: InFlightLimit) -> Self {
        Self {
            arrivals: RefCell::new(arrivals.map(Iterator::peekable)),
            limit: Rc::new(limit),
            waits: Cell::new(false),
            end: Cell::new(Moment::from_nanos(u64::MAX)),
        }
    }

    /// The next arrival, which stays in the schedule.
    pub(crate) fn peek(&self) -> Option<Arrival> {
        self.arrivals.borrow_mut().as_mut()?.peek().copied()
    }

    /// Takes the next arrival out of the schedule.
    pub(crate) fn take(&self) -> Option<Arrival> {
        self.arrivals.borrow_mut().as_mut()?.next()
    }
}
