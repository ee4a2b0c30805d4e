//! The schedule of a run: start times of all arrivals and virtual users.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Seed, StageId, Stripe};

use crate::error::{MAX_STAGES, ScheduleError, StageFault, StageProblem};
use crate::spec::{Arrivals, Load, Stages};
use crate::stage_table::{ArrivalIter, StagePlan, StageTable};

/// All intended starts: a pure function of stages, process, seed and trace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Schedule {
    table: Arc<StageTable>,
    fingerprint: u64,
}

impl Schedule {
    /// Puts the stages on the time axis. `trace_offsets` are the arrivals of the trace, measured
    /// from the start of the stage that plays it. Every trace stage plays them from the first, and
    /// ends one mean gap (at most a second) after the last, or earlier after its duration.
    ///
    /// # Errors
    /// All problems of the stages, each with its position, cause and fix.
    pub fn new(
        stages: &Stages,
        process: Arrivals,
        seed: Seed,
        trace_offsets: Option<Arc<[Nanos]>>,
    ) -> Result<Self, ScheduleError> {
        ScheduleError::unless_empty(problems(stages, trace_offsets.as_deref()))?;
        let offsets = trace_offsets.unwrap_or_default();
        let table = StageTable::new(&stages.0, process, seed, &offsets);
        let fingerprint = fingerprint(stages, process, seed, &offsets);
        Ok(Self { table: Arc::new(table), fingerprint })
    }

    /// The stages in chronological order; each starts at the end of the previous one.
    pub fn stages(&self) -> &[StagePlan] {
        self.table.plans()
    }

    /// Prolongs the last stage, so that recorded sessions begun in it can end.
    pub fn extend(&mut self, by: Nanos) {
        if let Some(table) = Arc::get_mut(&mut self.table) {
            table.extend(by);
        }
    }

    /// Time from the run's start to the end of the last stage.
    pub fn duration(&self) -> Nanos {
        self.stages().last().map_or(Nanos::ZERO, |last| last.end)
    }

    /// The stage at an offset from the run's start; `None` after the last.
    pub fn stage_at(&self, offset: Nanos) -> Option<StageId> {
        let position = self.stages().partition_point(|plan| plan.end <= offset);
        self.stages().get(position).map(|plan| plan.id)
    }

    /// The arrivals of the open stages that belong to `stripe`, in chronological order.
    pub fn arrivals(&self, stripe: Stripe) -> ArrivalIter {
        ArrivalIter::new(Arc::clone(&self.table), stripe)
    }

    /// Number of arrivals of a stage in the whole schedule; 0 for a closed one or an unknown id.
    ///
    /// The first call for a stage with Poisson arrivals computes all of them.
    pub fn planned(&self, stage: StageId) -> u64 {
        self.table.count(stage.index())
    }

    /// Maximum number of simultaneously active virtual users; they are numbered from 0.
    pub fn max_virtual_users(&self) -> u32 {
        peak(self.stages())
    }

    /// Times at which virtual user `vu` is active. There is a gap between any two windows.
    pub fn windows(&self, vu: u32) -> Vec<ActiveWindow> {
        windows(self.stages(), vu)
    }

    /// A hash of all inputs of the schedule: stages, process, seed, and the trace if a stage plays
    /// it. It is the same on every machine and in every release, whatever the stripe; shards with
    /// different fingerprints do not belong to the same run. It is 64-bit FNV-1a over
    /// `plimsoll-schedule-1 STAGES PROCESS SEED` and the trace's offsets as 8 little-endian bytes
    /// each.
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
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

/// Hashes everything that determines a schedule, stable over releases and machines: 64-bit FNV-1a
/// (Fowler, Noll, Vo; offset basis `cbf29ce484222325`, prime `100000001b3`) over these bytes:
///
/// 1. `plimsoll-schedule-1 STAGES PROCESS SEED` in ASCII, with the stages in their canonical
///    notation, `constant` or `poisson`, and the seed in decimal;
/// 2. only if a stage plays the trace: every offset in nanoseconds, as 8 bytes, little-endian.
///
/// A change to the computation of arrivals must change the leading number.
pub(crate) fn fingerprint(
    stages: &Stages,
    process: Arrivals,
    seed: Seed,
    offsets: &[Nanos],
) -> u64 {
    let process = match process {
        Arrivals::Constant => "constant",
        Arrivals::Poisson => "poisson",
    };
    let head = format!("plimsoll-schedule-1 {stages} {process} {}", seed.0);
    let trace = offsets.iter().filter(|_| stages.play_trace());
    let tail = trace.flat_map(|offset| offset.as_u64().to_le_bytes());
    head.into_bytes().into_iter().chain(tail).fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

// The closed model: when each virtual user is active.
//
// The number of virtual users follows a line `L(t)` from the stage's first number to its last.
// Virtual user `v`, counted from 0, is active while `L(t)` is above `v + 1/2`. At every instant,
// the number of active users is `L(t)` rounded to the nearest integer, and over the stage their
// total time equals the area under the line. `1..100:30s` therefore starts with one user, the
// second joins when the line crosses 1.5, and a falling line stops the users with the highest
// numbers first.
//
// In a stage of length `D` from `a` to `b` users the line crosses `v + 1/2` at `D (v + 1/2 - a)
// (b - a)`, computed with integers and rounded to the nearest nanosecond.

/// A period in which a virtual user is active: from `from` up to, but not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveWindow {
    /// Intended start of its first turn, as an offset from the run's start.
    pub from: Nanos,
    /// No turn starts at or after this offset from the run's start.
    pub to: Nanos,
}

/// The windows of virtual user `vu`. Windows of adjacent stages are joined.
pub(crate) fn windows(stages: &[StagePlan], vu: u32) -> Vec<ActiveWindow> {
    let mut windows: Vec<ActiveWindow> = Vec::new();
    for window in stages.iter().filter_map(|stage| active(stage, vu)) {
        match windows.last_mut() {
            Some(last) if last.to == window.from => last.to = window.to,
            _ => windows.push(window),
        }
    }
    windows
}

/// Maximum number of simultaneously active virtual users.
fn peak(stages: &[StagePlan]) -> u32 {
    stages
        .iter()
        .map(|stage: &StagePlan| match stage.load {
            Load::Closed { from, to } => from.max(to),
            Load::Open { .. } | Load::Trace => 0,
        })
        .max()
        .unwrap_or(0)
}

fn active(stage: &StagePlan, vu: u32) -> Option<ActiveWindow> {
    let Load::Closed { from, to } = stage.load else { return None };
    let window = match (vu < from, vu < to) {
        (true, true) => ActiveWindow { from: stage.start, to: stage.end },
        (false, true) => ActiveWindow { from: crossing(stage, from, to, vu), to: stage.end },
        (true, false) => ActiveWindow { from: stage.start, to: crossing(stage, from, to, vu) },
        (false, false) => return None,
    };
    (window.from < window.to).then_some(window)
}

/// Time at which the line crosses `vu + 1/2`. Callers check that it does, so that `from != to`.
fn crossing(stage: &StagePlan, from: u32, to: u32, vu: u32) -> Nanos {
    let length = u128::from((stage.end).saturating_sub(stage.start).as_u64());
    let rise = (2 * u128::from(vu) + 1).abs_diff(2 * u128::from(from));
    let total = 2 * u128::from(from.abs_diff(to));
    let nearest = (length * rise + total / 2) / total;
    stage.start + Nanos::new(u64::try_from(nearest).unwrap_or(u64::MAX))
}
