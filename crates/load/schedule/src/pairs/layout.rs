//! Divides a comparison into times with targets side by side, and with targets alone.

use plimsoll_measure::{Nanos, StageId, TargetId};

use super::{
    ALONE_ROUNDS, ALONE_SHARE, AT_ONCE, LEAST_ALONE, Orders, PairMode, PairSpec, TargetWindow,
};
use crate::spec::{Load, StageSpec, Stages};
use crate::stage_table::StagePlan;

/// The time of a run, divided into segments.
#[derive(Debug)]
pub(super) struct Layout {
    /// In chronological order; covers the whole run, except parts of stages that their windows do
    /// not fill.
    segments: Vec<Segment>,
    /// Gap between two requests of a block, by stage.
    gaps: Vec<Option<Nanos>>,
}

/// A period within a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) stage: StageId,
    /// Whether the stage is closed.
    pub(super) closed: bool,
    /// First instant, as an offset from the run's start.
    pub(super) start: Nanos,
    /// Instant after its last.
    pub(super) end: Nanos,
    /// First instant on the axis of the blocks.
    pub(super) from: Nanos,
    /// Gap between two requests of a block, if targets run side by side.
    pub(super) gap: Nanos,
    /// One round of windows, if each target is alone.
    pub(super) windows: Option<Windows>,
}

/// A round of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) round: u32,
    pub(super) length: Nanos,
}

impl Layout {
    /// Divides stages; `arrivals` returns the number of arrivals of a stage. Also returns the
    /// stages on the axis of the blocks.
    pub(super) fn new(
        stages: &[StagePlan],
        arrivals: impl Fn(StageId) -> u64,
        spec: &PairSpec,
    ) -> (Self, Stages) {
        let mut builder = Builder { spec, segments: Vec::new(), axis: Nanos::ZERO, rounds: 0 };
        let (mut gaps, mut on_axis) = (Vec::new(), Vec::new());
        for stage in stages {
            let from = builder.axis;
            if spec.mode == PairMode::Turns {
                gaps.push(None);
                builder.turns(stage);
            } else if is_closed(stage) {
                gaps.push(Some(AT_ONCE));
                builder.stretch(stage, stage.start, stage.end, AT_ONCE);
            } else {
                let gap = gap(stage, || arrivals(stage.id), spec);
                gaps.push(Some(gap));
                builder.beside(stage, gap);
            }
            let duration = builder.axis.saturating_sub(from).max(Nanos::new(1));
            builder.axis = from + duration;
            let StagePlan { load, warmup, .. } = *stage;
            on_axis.push(StageSpec { load, duration: Some(duration), warmup });
        }
        (Self { segments: builder.segments, gaps }, Stages(on_axis))
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(super) fn gap(&self, stage: StageId) -> Option<Nanos> {
        self.gaps.get(stage.index()).copied().flatten()
    }

    /// The segment at an offset from the run's start; the last one after the end.
    pub(super) fn segment_at(&self, at: Nanos) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= at);
        self.segments.get(after.checked_sub(1)?)
    }

    /// The segment at an instant on the axis of the blocks.
    pub(super) fn segment_on_axis(&self, at: Nanos) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.from <= at);
        self.segments.get(after.checked_sub(1)?)
    }
}

impl Segment {
    /// Time for which each target is loaded in it.
    pub(super) fn loaded(&self) -> Nanos {
        self.windows.map_or_else(|| self.end.saturating_sub(self.start), |windows| windows.length)
    }

    /// The windows of all targets in chronological order; empty if they run side by side.
    pub(super) fn target_windows(&self, orders: &Orders) -> Vec<TargetWindow> {
        let Some(Windows { round, length }) = self.windows else { return Vec::new() };
        let mut from = self.start;
        orders
            .order(round.into())
            .into_iter()
            .map(|target: TargetId| {
                let to = from + length;
                TargetWindow { round, target, from: std::mem::replace(&mut from, to), to }
            })
            .collect()
    }
}

/// Appends segments one after another.
struct Builder<'s> {
    spec: &'s PairSpec,
    segments: Vec<Segment>,
    axis: Nanos,
    rounds: u32,
}

impl Builder<'_> {
    /// Adds as many rounds as fit.
    fn turns(&mut self, stage: &StagePlan) {
        let (length, targets) = (stage.end.saturating_sub(stage.start), self.targets());
        let least = self.spec.window.as_u64().saturating_mul(targets).max(1);
        let rounds = (length.as_u64() / least).max(1);
        let window = Nanos::new(length.as_u64() / rounds / targets);
        let mut start = stage.start;
        for _ in 0..rounds {
            start = self.round(stage, start, window);
        }
    }

    /// Adds side-by-side segments, with a few evenly spaced rounds of windows.
    fn beside(&mut self, stage: &StagePlan, gap: Nanos) {
        let (length, targets) = (stage.end.saturating_sub(stage.start), self.targets());
        let most = length.as_u64() / ALONE_SHARE / ALONE_ROUNDS / targets;
        let window = self.spec.alone.min(Nanos::new(most));
        let rounds = if window < LEAST_ALONE || stage.warmup || stage.load == Load::Trace {
            0
        } else {
            ALONE_ROUNDS
        };
        let alone = rounds * targets * window.as_u64();
        let part = Nanos::new((length.as_u64() - alone) / (rounds + 1));
        let mut start = stage.start;
        for _ in 0..rounds {
            let end = self.stretch(stage, start, start + part, gap);
            start = self.round(stage, end, window);
        }
        self.stretch(stage, start, stage.end, gap);
    }

    fn targets(&self) -> u64 {
        self.spec.targets.max(1).into()
    }

    /// Adds a side-by-side segment, and returns its end.
    fn stretch(&mut self, plan: &StagePlan, start: Nanos, end: Nanos, gap: Nanos) -> Nanos {
        let (stage, closed, from) = (plan.id, is_closed(plan), self.axis);
        self.axis += end.saturating_sub(start);
        self.segments.push(Segment { stage, closed, start, end, from, gap, windows: None });
        end
    }

    /// Adds a round of windows, and returns its end.
    fn round(&mut self, stage: &StagePlan, start: Nanos, length: Nanos) -> Nanos {
        let from = self.axis;
        self.axis += length;
        let end = start + Nanos::new(length.as_u64().saturating_mul(self.targets()));
        let windows = Some(Windows { round: self.rounds, length });
        self.rounds += 1;
        let (closed, gap) = (is_closed(stage), Nanos::ZERO);
        self.segments.push(Segment { stage: stage.id, closed, start, end, from, gap, windows });
        end
    }
}

/// Whether a stage has virtual users.
const fn is_closed(stage: &StagePlan) -> bool {
    matches!(stage.load, Load::Closed { .. })
}

/// Gap between two requests of a block: it spaces the requests of all blocks evenly at the highest
/// rate of the stage, but is limited by the spec.
fn gap(stage: &StagePlan, arrivals: impl Fn() -> u64, spec: &PairSpec) -> Nanos {
    if spec.mode == PairMode::Together {
        return AT_ONCE;
    }
    let length = stage.end.saturating_sub(stage.start).as_secs_f64();
    let rate = match stage.load {
        Load::Open { from, to } => from.max(to),
        Load::Closed { .. } | Load::Trace => arrivals() as f64 / length,
    };
    let apart = Nanos::from_secs_f64(1.0 / rate / f64::from(spec.targets.max(1)));
    apart.min(spec.gap).max(AT_ONCE)
}
