//! The stages of a run on its time axis, each with its arrivals.

use std::iter::FusedIterator;
use std::sync::{Arc, OnceLock};

use plimsoll_measure::{Nanos, Seed, StageId, Stripe};

use crate::arrival_process::{Cursor, Rate, StageArrivals};
use crate::spec::{Arrivals, Load, StageSpec};

/// One stage on the run's time axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagePlan {
    /// Position in the run.
    pub id: StageId,
    /// First instant, as an offset from the run's start.
    pub start: Nanos,
    /// Instant after its last, as an offset from the run's start.
    pub end: Nanos,
    /// The load shape.
    pub load: Load,
    /// Whether it is a warm-up: recorded separately, and excluded from every total and threshold.
    pub warmup: bool,
}

impl StagePlan {
    /// Time at which one more arrival is expected after `at`, both as offsets from the run's start;
    /// `at` if no rate is planned, and the end of the stage if no arrival is expected in it.
    pub fn next_due(&self, at: Nanos) -> Nanos {
        let Load::Open { from, to } = self.load else { return at };
        let rate = Rate::new(from, to, self.end.saturating_sub(self.start));
        let before = rate.integral(at.saturating_sub(self.start).as_secs_f64());
        rate.due(before + 1.0).map_or(self.end, |due| (self.start + due).min(self.end))
    }
}

/// All stages, each with its arrivals.
#[derive(Debug)]
pub(crate) struct StageTable {
    plans: Vec<StagePlan>,
    arrivals: Vec<StageArrivals>,
    /// Number of arrivals of each stage, counted when first needed.
    counts: Vec<OnceLock<u64>>,
}

impl StageTable {
    /// Puts the stages one after another. `trace_offsets` are in chronological order.
    pub(crate) fn new(
        stages: &[StageSpec],
        process: Arrivals,
        seed: Seed,
        trace_offsets: &Arc<[Nanos]>,
    ) -> Self {
        let plans = plans(stages, trace_length(trace_offsets));
        let arrivals = plans.iter().map(|plan| {
            let length = plan.end.saturating_sub(plan.start);
            let gaps = seed.rng("arrivals", u64::from(plan.id.0));
            StageArrivals::new(plan.load, length, process, gaps, trace_offsets)
        });
        Self { arrivals: arrivals.collect(), counts: vec![OnceLock::new(); plans.len()], plans }
    }

    pub(crate) fn extend(&mut self, by: Nanos) {
        if let Some(last) = self.plans.last_mut() {
            last.end += by;
        }
    }

    pub(crate) fn plans(&self) -> &[StagePlan] {
        &self.plans
    }

    pub(crate) fn stage(&self, position: usize) -> Option<(&StagePlan, &StageArrivals)> {
        self.plans.get(position).zip(self.arrivals.get(position))
    }

    /// Number of arrivals of a stage; 0 for an unknown one.
    pub(crate) fn count(&self, position: usize) -> u64 {
        let stage = self.counts.get(position).zip(self.arrivals.get(position));
        stage.map_or(0, |(count, arrivals)| *count.get_or_init(|| arrivals.count()))
    }
}

/// Length of a trace stage: up to one mean gap after its last arrival, when another one would be
/// due. Then its rate covers all of its arrivals, and the last one has time to be sent. The gap is
/// at most a second, and exactly a second if all arrivals come at once.
fn trace_length(offsets: &[Nanos]) -> Nanos {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Nanos::ZERO };
    let gaps = (offsets.len() as u64 - 1).max(1);
    let mean = last.saturating_sub(*first).as_u64() / gaps;
    let longest = Nanos::from_secs(1);
    *last + if mean == 0 { longest } else { Nanos::new(mean).min(longest) }
}

fn plans(stages: &[StageSpec], trace_length: Nanos) -> Vec<StagePlan> {
    let mut end = Nanos::ZERO;
    stages
        .iter()
        .zip(0u16..)
        .map(|(stage, position)| {
            let start = end;
            let longest =
                if stage.load == Load::Trace { trace_length } else { Nanos::new(u64::MAX) };
            end += stage.duration.map_or(longest, |length| length.min(longest));
            let (load, warmup) = (stage.load, stage.warmup);
            StagePlan { id: StageId(position), start, end, load, warmup }
        })
        .collect()
}

// The open model: all arrivals of a run, and the share that one worker executes.

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
