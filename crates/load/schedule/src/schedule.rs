//! The stages on the run's time axis, with everything that starts in them.

use std::sync::{Arc, OnceLock};

use plimsoll_measure::{Nanos, Seed, StageId, Stripe};

use crate::arrivals::ArrivalIter;
use crate::clients::{self, ActiveWindow};
use crate::error::{ScheduleError, StageFault, StageProblem};
use crate::fingerprint::fingerprint;
use crate::pace::Pace;
use crate::spec::{Arrivals, Load, MAX_STAGES, StageSpec, Stages};

/// One stage at its place in the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagePlan {
    /// Its position.
    pub id: StageId,
    /// Its first instant, as an offset from the run's start.
    pub start: Nanos,
    /// The instant after its last, as an offset from the run's start.
    pub end: Nanos,
    /// The load shape.
    pub load: Load,
    /// Recorded apart, and left out of every total and threshold.
    pub warmup: bool,
}

/// When everything starts: a pure function of stages, process, seed and trace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Schedule(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    plans: Vec<StagePlan>,
    paces: Vec<Pace>,
    /// Arrivals of each stage, counted when first asked for.
    counts: Vec<OnceLock<u64>>,
    fingerprint: u64,
}

impl Schedule {
    /// Lays the stages on the time axis. `trace_offsets` are the arrivals of the trace, measured from
    /// the start of the stage that plays it; every trace stage plays them from the first. A trace
    /// stage without a duration ends a nanosecond after its last arrival.
    ///
    /// # Errors
    /// Everything that is wrong with the stages, each with its position, cause and mend.
    pub fn new(
        stages: &Stages,
        process: Arrivals,
        seed: Seed,
        trace_offsets: Option<Arc<[Nanos]>>,
    ) -> Result<Self, ScheduleError> {
        ScheduleError::unless_empty(problems(stages, trace_offsets.as_deref()))?;
        let offsets = trace_offsets.unwrap_or_default();
        let after_trace = offsets.last().map_or(Nanos::ZERO, |last| *last + Nanos::new(1));
        let plans = plans(&stages.0, after_trace);
        let pace = |plan: &StagePlan| {
            let length = plan.end.saturating_sub(plan.start);
            let gaps = seed.rng("arrivals", u64::from(plan.id.0));
            Pace::new(plan.load, length, (process, gaps), &offsets)
        };
        Ok(Self(Arc::new(Inner {
            paces: plans.iter().map(pace).collect(),
            counts: vec![OnceLock::new(); plans.len()],
            plans,
            fingerprint: fingerprint(stages, process, seed, &offsets),
        })))
    }

    /// The stages in the order of time; each starts where the one before ends.
    pub fn stages(&self) -> &[StagePlan] {
        &self.0.plans
    }

    /// From the run's start to the end of the last stage.
    pub fn duration(&self) -> Nanos {
        self.0.plans.last().map_or(Nanos::ZERO, |last| last.end)
    }

    /// The stage that an offset from the run's start lies in; `None` after the last.
    pub fn stage_at(&self, offset: Nanos) -> Option<StageId> {
        let position = self.0.plans.partition_point(|plan| plan.end <= offset);
        self.0.plans.get(position).map(|plan| plan.id)
    }

    /// The arrivals of the open stages that belong to `stripe`, in the order of time.
    pub fn arrivals(&self, stripe: Stripe) -> ArrivalIter {
        ArrivalIter::new(self.clone(), stripe)
    }

    /// Number of arrivals of a stage in the whole schedule; 0 for a closed one or an unknown id.
    ///
    /// The first call for a stage with Poisson arrivals walks through them.
    pub fn planned(&self, stage: StageId) -> u64 {
        let known = self.0.counts.get(stage.index()).zip(self.0.paces.get(stage.index()));
        known.map_or(0, |(count, pace)| *count.get_or_init(|| pace.count()))
    }

    /// The most virtual users that are ever active; they are numbered from 0.
    pub fn max_virtual_users(&self) -> u32 {
        clients::most(&self.0.plans)
    }

    /// When virtual user `vu` is active, see [`clients`]. Windows never touch.
    pub fn windows(&self, vu: u32) -> Vec<ActiveWindow> {
        clients::windows(&self.0.plans, vu)
    }

    /// A hash of everything that determines the schedule: stages, process, seed and the trace where
    /// it is played. The same on every machine and in every release, whatever the stripe; shards of
    /// different fingerprints are not parts of one run. It is 64-bit FNV-1a over
    /// `plimsoll-schedule-1 STAGES PROCESS SEED` and the trace's offsets as 8 little-endian bytes each.
    pub fn fingerprint(&self) -> u64 {
        self.0.fingerprint
    }

    pub(crate) fn stage(&self, position: usize) -> Option<(&StagePlan, &Pace)> {
        self.0.plans.get(position).zip(self.0.paces.get(position))
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

fn problems(stages: &Stages, trace: Option<&[Nanos]>) -> Vec<StageProblem> {
    let problem = |position, text, fault| StageProblem { position, text, fault };
    if stages.0.is_empty() {
        return vec![problem(1, String::new(), StageFault::Empty)];
    }
    if let Some(surplus) = stages.0.get(MAX_STAGES) {
        return vec![problem(MAX_STAGES + 1, surplus.to_string(), StageFault::TooManyStages)];
    }
    let trace_fault = trace_fault(trace);
    let mut problems = Vec::new();
    for (stage, position) in stages.0.iter().zip(1..) {
        let of_trace = trace_fault.iter().filter(|_| stage.load == Load::Trace).cloned();
        let faults = stage.faults().chain(of_trace);
        problems.extend(faults.map(|fault| problem(position, stage.to_string(), fault)));
    }
    problems
}

fn trace_fault(trace: Option<&[Nanos]>) -> Option<StageFault> {
    let Some(offsets) = trace else { return Some(StageFault::NoTrace) };
    if offsets.is_empty() {
        return Some(StageFault::EmptyTrace);
    }
    let back = offsets.windows(2).position(|pair| pair[0] > pair[1])?;
    Some(StageFault::UnsortedTrace(back + 1))
}
