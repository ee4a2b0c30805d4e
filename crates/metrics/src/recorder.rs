//! The worker-local accumulator: no lock, and no allocation once every cell has been touched.

use plimsoll_measure::{LaneId, Moment, Nanos, Outcome, Sample, ScenarioId, StageId};

use crate::cell::CellKey;
use crate::snapshot::Snapshot;

/// Counts what one worker plans and measures.
///
/// The two sides of the accounting identity are counted apart: [`Recorder::scheduled`] when a request
/// is planned, [`Recorder::record`] when its fate is known.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    stage_ends: Vec<Moment>,
    snapshot: Snapshot,
}

impl Recorder {
    /// A recorder for stages that follow one another and end at these moments; a stage without an end
    /// of its own ends at `u64::MAX` nanoseconds.
    ///
    /// The ends decide which completions count as throughput of which stage.
    pub const fn new(stage_ends: Vec<Moment>) -> Self {
        Self { stage_ends, snapshot: Snapshot::new() }
    }

    /// Counts a request that the schedule asks for.
    pub fn scheduled(&mut self, stage: StageId, scenario: ScenarioId, lane: LaneId) {
        self.snapshot.cell(CellKey { stage, scenario, lane }).counters.scheduled += 1;
    }

    /// Records what became of a request, with the gaps of its stream. The gaps count only where the
    /// request completed.
    pub fn record(&mut self, sample: &Sample, gaps: &[Nanos]) {
        let key = CellKey::of(sample);
        self.snapshot.cell(key).record(sample, gaps);
        if let Some(stage) = self.stage_at(sample.timeline.dispatched) {
            self.snapshot.cell(CellKey { stage, ..key }).counters.dispatch();
        }
        if let (Outcome::Completed, Some(stage)) =
            (sample.outcome, self.stage_at(sample.timeline.finished))
        {
            self.snapshot.cell(CellKey { stage, ..key }).counters.complete(sample.usage.completion);
        }
    }

    /// Hands over what was counted since the last call. The histograms are moved, not copied, so
    /// this is cheap for the worker; the next values allocate anew.
    pub fn take(&mut self) -> Snapshot {
        std::mem::take(&mut self.snapshot)
    }

    /// The stage that lasted at this moment; `None` after the last one.
    fn stage_at(&self, moment: Option<Moment>) -> Option<StageId> {
        let moment = moment?;
        let index = self.stage_ends.partition_point(|&end| end <= moment);
        let stage = StageId(u16::try_from(index).ok()?);
        (index < self.stage_ends.len()).then_some(stage)
    }
}
