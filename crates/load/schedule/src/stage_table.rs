//! The stages of a run on its time axis, each with its arrivals.

use std::sync::{Arc, OnceLock};

use plimsoll_measure::{Nanos, Seed, StageId};

use crate::arrival_process::StageArrivals;
use crate::rate::Rate;
use crate::spec::{Arrivals, Load, StageSpec};

/// One stage on the run's time axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagePlan {
    /// Its position in the run.
    pub id: StageId,
    /// Its first instant, as an offset from the run's start.
    pub start: Nanos,
    /// The instant after its last, as an offset from the run's start.
    pub end: Nanos,
    /// The load shape.
    pub load: Load,
    /// Recorded separately, and left out of every total and threshold.
    pub warmup: bool,
}

impl StagePlan {
    /// When one more arrival is expected after `at`, both as offsets from the run's start; `at`
    /// where no rate is planned, and the end of the stage where none is expected in it.
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
    /// Puts the stages one after another. `trace_offsets` are in the order of time.
    pub(crate) fn new(
        stages: &[StageSpec],
        process: Arrivals,
        seed: Seed,
        trace_offsets: &Arc<[Nanos]>,
    ) -> Self {
        let after_trace = trace_offsets.last().map_or(Nanos::ZERO, |last| *last + Nanos::new(1));
        let plans = plans(stages, after_trace);
        let arrivals = plans.iter().map(|plan| {
            let length = plan.end.saturating_sub(plan.start);
            let gaps = seed.rng("arrivals", u64::from(plan.id.0));
            StageArrivals::new(plan.load, length, process, gaps, trace_offsets)
        });
        Self { arrivals: arrivals.collect(), counts: vec![OnceLock::new(); plans.len()], plans }
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

fn plans(stages: &[StageSpec], after_trace: Nanos) -> Vec<StagePlan> {
    let mut end = Nanos::ZERO;
    stages
        .iter()
        .zip(0u16..)
        .map(|(stage, position)| {
            let start = end;
            end += stage.duration.unwrap_or(after_trace);
            let (load, warmup) = (stage.load, stage.warmup);
            StagePlan { id: StageId(position), start, end, load, warmup }
        })
        .collect()
}
