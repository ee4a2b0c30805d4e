//! The recorder: counts in one worker, without locks and, once every cell exists, without
//! allocation.

use plimsoll_measure::{
    LateRead, Moment, Nanos, Outcome, RequestBounds, Sample, ScenarioId, ServerParts, StageId,
    TargetId,
};

use crate::edges::{WHOLE, is_shared};
use crate::group_stats::{GroupKey, GroupStats};
use crate::snapshot::Snapshot;

/// Counts the requests of one worker.
///
/// The two sides of the accounting identity are counted separately: [`Recorder::scheduled`] when a
/// request is planned, [`Recorder::record`] when its outcome is known.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The run's start, from which seconds are counted.
    origin: Moment,
    stage_ends: Vec<Moment>,
    /// The load ended then, although its stages did not.
    ended: Option<Moment>,
    /// The requests that a warm-up left in flight, and whether they are good. They are few.
    of_warmup: Vec<(Sample, bool)>,
    /// The bounds of a good request.
    goodput: Option<RequestBounds>,
    /// The key of each of `cells`. A worker uses few in an interval, so that a search from the
    /// newest on is faster than a map.
    keys: Vec<GroupKey>,
    cells: Vec<GroupStats>,
}

impl Recorder {
    /// A recorder for stages that follow one another and end at these moments; a stage without a
    /// fixed end ends at `u64::MAX` nanoseconds.
    ///
    /// The ends decide to which stage's throughput a completion counts.
    pub fn new(stage_ends: Vec<Moment>) -> Self {
        Self { stage_ends, ..Self::default() }
    }

    /// The same of a run that began at `origin`, instead of the clock's epoch.
    pub fn starting_at(self, origin: Moment) -> Self {
        Self { origin, ..self }
    }

    /// The same that also counts the requests that keep these bounds.
    pub fn with_goodput(self, goodput: Option<RequestBounds>) -> Self {
        Self { goodput, ..self }
    }

    /// Counts the requests of users that a warm-up left in flight: `apart` to the warm-up alone, if
    /// a number of requests ended the load; else to each stage by their share.
    pub fn count_warmup(&mut self, apart: bool) {
        for (sample, good) in std::mem::take(&mut self.of_warmup) {
            self.record_across_stages(&sample, good, apart.then_some(sample.stage));
        }
    }

    /// The load ends at `at`, before its stages do: what is sent or answered later counts to no
    /// stage's throughput.
    pub fn end_early(&mut self, at: Moment) {
        self.ended = Some(self.end_by(at));
    }

    /// When the load ended, if that was before its stages did.
    pub const fn ended_early(&self) -> Option<Moment> {
        self.ended
    }

    /// The earlier of a moment and the end of the load, if that was early.
    fn end_by(&self, moment: Moment) -> Moment {
        self.ended.map_or(moment, |ended| ended.min(moment))
    }

    /// Counts a request that the schedule asks for.
    pub fn scheduled(&mut self, stage: StageId, scenario: ScenarioId, target: TargetId) {
        self.scheduled_in(GroupKey { stage, scenario, target, operation: None });
    }

    /// The same of a request that belongs to this cell.
    pub fn scheduled_in(&mut self, key: GroupKey) {
        self.cell(key).counters.scheduled += 1;
    }

    /// Records the outcome of a request, with the gaps and the late reads of its stream. The gaps
    /// count only if the request completed.
    pub fn record(&mut self, sample: &Sample, gaps: &[Nanos], late_reads: &[LateRead]) {
        let key = GroupKey::for_sample(sample);
        let timeline = &sample.timeline;
        let whole = timeline.dispatched.is_some()
            && self.is_within(key.stage, timeline.intended, timeline.finished);
        let stage_end = self.stage_ends.get(key.stage.index()).copied().unwrap_or(Moment::EPOCH);
        let origin = self.origin;
        let good = self.judge(sample);
        let cell = self.cell(key);
        cell.record(sample, gaps, late_reads);
        cell.starts.count(sample, origin);
        if sample.is_arrival() {
            cell.counters.arrival(sample, stage_end);
            if timeline.dispatched.is_some() {
                cell.record_pacing_lag(sample.pacing_lag());
            }
        }
        if whole {
            cell.in_flight_time +=
                u128::from(timeline.response_time().unwrap_or_default().as_u64());
            cell.counters.dispatch(sample);
            if sample.outcome == Outcome::Completed {
                cell.counters.complete(sample.usage.completion);
            }
            cell.counters.good_in_stage += u64::from(good);
        } else if sample.warmup && !sample.conversation.is_arrival() {
            self.of_warmup.push((*sample, good));
        } else {
            self.record_across_stages(sample, good, None);
        }
    }

    /// Whether a request is good; counted in its cell.
    #[inline]
    fn judge(&mut self, sample: &Sample) -> bool {
        let Some(bounds) = &self.goodput else { return false };
        if sample.outcome == Outcome::Cancelled {
            return false;
        }
        let good = bounds.are_kept_by(sample);
        let but_for_us = !good && bounds.may_be_kept_by(sample);
        let counters = &mut self.cell(GroupKey::for_sample(sample)).counters;
        counters.goodput_judged += 1;
        counters.good += u64::from(good);
        counters.good_but_for_generator += u64::from(but_for_us);
        good
    }

    /// Records the parts of its time that the target of a request names.
    pub fn record_parts(&mut self, sample: &Sample, parts: &ServerParts) {
        self.cell(GroupKey::for_sample(sample)).record_parts(sample, parts);
    }

    /// Takes the counts since the last call. The histograms are moved, not copied, which is cheap
    /// for the worker; the next values allocate new ones.
    pub fn take(&mut self) -> Snapshot {
        self.keys.drain(..).zip(self.cells.drain(..)).collect()
    }

    /// Counts a request that did not begin and end within its own stage, in all stages or in one.
    #[cold]
    fn record_across_stages(&mut self, sample: &Sample, good: bool, only: Option<StageId>) {
        let (key, timeline) = (GroupKey::for_sample(sample), &sample.timeline);
        let (closed, shared) = (!sample.conversation.is_arrival(), is_shared(sample));
        let counts = |stage: &StageId| only.is_none_or(|only| only == *stage);
        if let Some(stage) = self.stage_at(timeline.dispatched).filter(counts) {
            let cell = self.cell(GroupKey { stage, ..key });
            cell.counters.dispatch(sample);
            let is_late = !closed && stage != key.stage && !sample.is_unconnected();
            cell.edges.late += u64::from(is_late);
            cell.edges.requests -= i64::from(shared) * WHOLE;
        }
        if let Some(stage) = self.stage_at(timeline.finished).filter(counts) {
            let cell = self.cell(GroupKey { stage, ..key });
            cell.counters.good_in_stage += u64::from(good);
            if sample.outcome == Outcome::Completed {
                cell.counters.complete(sample.usage.completion);
                cell.edges.entered_completed += u64::from(stage != key.stage);
            }
            if shared {
                cell.edges.answer(sample, -WHOLE, good);
            }
        }
        let until = match sample.outcome {
            Outcome::NeverSent => timeline.intended,
            // Without a response when the last stage had ended.
            _ => timeline.finished.unwrap_or(Moment::from_nanos(u64::MAX)),
        };
        let mut from = timeline.intended;
        while let Some(stage) =
            self.stage_at(Some(from)).filter(|stage| from < until && counts(stage))
        {
            let to = self.end_by(self.stage_ends[stage.index()]).min(until);
            let cell = self.cell(GroupKey { stage, ..key });
            cell.in_flight_time += u128::from(to.since(from).as_u64());
            cell.edges.part(sample, [from, to], until, good);
            from = to;
        }
    }

    /// Whether a request began and ended within this stage.
    fn is_within(&self, stage: StageId, intended: Moment, finished: Option<Moment>) -> bool {
        let before = stage.index().checked_sub(1).and_then(|before| self.stage_ends.get(before));
        let start = before.copied().unwrap_or(Moment::EPOCH);
        let end = self.stage_ends.get(stage.index()).copied().unwrap_or(Moment::EPOCH);
        let end = self.end_by(end);
        intended >= start && finished.is_some_and(|finished| finished < end)
    }

    /// The stage that lasted at this moment; `None` after the last one.
    fn stage_at(&self, moment: Option<Moment>) -> Option<StageId> {
        let moment = moment.filter(|&moment| self.ended.is_none_or(|ended| moment < ended))?;
        let index = self.stage_ends.partition_point(|&end| end <= moment);
        let stage = StageId(u16::try_from(index).ok()?);
        (index < self.stage_ends.len()).then_some(stage)
    }

    #[inline]
    fn cell(&mut self, key: GroupKey) -> &mut GroupStats {
        let index = self.keys.iter().rposition(|known| *known == key);
        let index = index.unwrap_or_else(|| self.open(key));
        &mut self.cells[index]
    }

    #[cold]
    fn open(&mut self, key: GroupKey) -> usize {
        self.keys.push(key);
        self.cells.push(GroupStats::default());
        self.keys.len() - 1
    }
}
