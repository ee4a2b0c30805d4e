//! The open model: all arrivals of a run, and the share that one worker executes.

use std::iter::FusedIterator;
use std::sync::Arc;

use plimsoll_measure::{Nanos, StageId, Stripe};

use crate::arrival_process::Cursor;
use crate::stage_table::StageTable;

/// One intended start of the open model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number in the whole run, from 0, over all stages and stripes.
    pub seq: u64,
    /// Offset from the run's start.
    pub at: Nanos,
    /// Stage of the arrival.
    pub stage: StageId,
    /// Number within the stage, from 0; in a trace stage, the row of the trace.
    pub index: u64,
}

/// The arrivals of one stripe in chronological order.
///
/// Every stripe computes all arrivals and keeps its own, so that the stripes together are exactly
/// the whole schedule, whatever their number. One arrival costs about ten nanoseconds, or a few
/// tens in a Poisson process.
#[derive(Clone, Debug)]
pub struct ArrivalIter {
    stages: Arc<StageTable>,
    stripe: Stripe,
    stage: usize,
    /// Position in the current stage; `None` before its first arrival.
    cursor: Option<Cursor>,
    seq: u64,
}

impl ArrivalIter {
    pub(crate) const fn new(stages: Arc<StageTable>, stripe: Stripe) -> Self {
        Self { stages, stripe, stage: 0, cursor: None, seq: 0 }
    }

    /// The next arrival of the whole run.
    fn next_of_run(&mut self) -> Option<Arrival> {
        loop {
            let (plan, arrivals) = self.stages.stage(self.stage)?;
            let cursor = self.cursor.get_or_insert_with(|| arrivals.start());
            if let Some((index, offset)) = arrivals.next(cursor) {
                let seq = self.seq;
                self.seq += 1;
                return Some(Arrival { seq, at: plan.start + offset, stage: plan.id, index });
            }
            self.stage += 1;
            self.cursor = None;
        }
    }
}

impl Iterator for ArrivalIter {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let arrival = self.next_of_run()?;
            if self.stripe.owns(arrival.seq) {
                return Some(arrival);
            }
        }
    }
}

impl FusedIterator for ArrivalIter {}
