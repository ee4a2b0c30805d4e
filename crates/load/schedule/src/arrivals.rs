//! The open model: every arrival of a run, and the part of them that one worker carries.

use std::iter::FusedIterator;

use plimsoll_measure::{Nanos, StageId, Stripe};

use crate::pace::Walk;
use crate::schedule::Schedule;

/// One intended start of the open model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number in the whole run, from 0, over all stages and stripes.
    pub seq: u64,
    /// Offset from the run's start.
    pub at: Nanos,
    /// The stage it belongs to.
    pub stage: StageId,
    /// Number within the stage, from 0; the row of the trace in a trace stage.
    pub index: u64,
}

/// The arrivals of one stripe in the order of time.
///
/// Every stripe walks the whole schedule and keeps its own, so that all stripes together are exactly
/// the whole, for any number of them. A step of the walk costs some ten nanoseconds, a few tens in a
/// Poisson process.
#[derive(Clone, Debug)]
pub struct ArrivalIter {
    schedule: Schedule,
    stripe: Stripe,
    stage: usize,
    /// Through the current stage; `None` before its first step.
    walk: Option<Walk>,
    seq: u64,
}

impl ArrivalIter {
    pub(crate) const fn new(schedule: Schedule, stripe: Stripe) -> Self {
        Self { schedule, stripe, stage: 0, walk: None, seq: 0 }
    }

    /// The next arrival of the whole run.
    fn step(&mut self) -> Option<Arrival> {
        loop {
            let (plan, pace) = self.schedule.stage(self.stage)?;
            if let Some((index, offset)) = pace.next(self.walk.get_or_insert_with(|| pace.walk())) {
                let seq = self.seq;
                self.seq += 1;
                return Some(Arrival { seq, at: plan.start + offset, stage: plan.id, index });
            }
            self.stage += 1;
            self.walk = None;
        }
    }
}

impl Iterator for ArrivalIter {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let arrival = self.step()?;
            if self.stripe.owns(arrival.seq) {
                return Some(arrival);
            }
        }
    }
}

impl FusedIterator for ArrivalIter {}
