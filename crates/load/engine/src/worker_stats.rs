//! The counters of one worker.

use std::collections::BTreeMap;

use plimsoll_measure::{
    LateRead, Moment, Nanos, Outcome, RequestBounds, Sample, ServerParts, StageId, TargetId,
    TaskSample,
};
use plimsoll_metrics::{Conversations, GroupKey, Recorder, Snapshot, TaskTally};
use plimsoll_transport::ResponseHead;

use crate::sink::RowExtras;

/// Reasons why requests did not complete, by kind.
pub(crate) type Causes = BTreeMap<String, CauseTally>;

/// Requests that did not complete, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CauseTally {
    /// Their number.
    pub(crate) count: u64,
    /// The first message of each target that gave one, in the order of their first failures.
    pub(crate) first: Vec<(TargetId, String)>,
}

impl CauseTally {
    fn add(&mut self, target: TargetId, message: &str) {
        self.count += 1;
        if !message.is_empty() {
            self.note(target, message.to_owned());
        }
    }

    fn note(&mut self, target: TargetId, message: String) {
        if !self.first.iter().any(|(known, _)| *known == target) {
            self.first.push((target, message));
        }
    }

    /// Adds the statistics of another worker.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        for (target, message) in other.first {
            self.note(target, message);
        }
    }
}

/// The kind of cause under which followed redirects are counted.
pub const FOLLOWED_REDIRECTS: &str = "redirects";

/// Counts of one worker, over the run or since the last snapshot.
#[derive(Debug)]
pub(crate) struct WorkerStats {
    recorder: Recorder,
    in_flight: InFlightIntegral,
    /// When the run began.
    origin: Moment,
    /// By target.
    open: Vec<OpenTurns>,
    conversations: Conversations,
    tasks: TaskTally,
    /// When the last snapshot was taken.
    counted_from: Moment,
    causes: Causes,
    /// `Server` headers by target, from the first responses.
    servers: Vec<Option<String>>,
    /// The last answer so far to requests that are used up.
    until_answered: Option<LoadEnd>,
}

/// The end of a load, and the requests in flight until then.
#[derive(Debug)]
pub(crate) struct LoadEnd {
    pub(crate) at: Moment,
    /// By stage.
    pub(crate) in_flight: Vec<StageInFlight>,
}

/// Whether a request with this outcome was answered, or refused an answer, while others waited.
const fn is_answered(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Completed | Outcome::Rejected(_) | Outcome::Failed(_))
}

impl WorkerStats {
    /// Creates empty counts; the stages begin at `origin` and end at `stage_ends`.
    pub(crate) fn new(
        origin: Moment,
        stage_ends: Vec<Moment>,
        targets: usize,
        goodput: Option<RequestBounds>,
    ) -> Self {
        let recorder = Recorder::new(stage_ends.clone()).starting_at(origin);
        Self {
            in_flight: InFlightIntegral::new(origin, stage_ends),
            origin,
            open: (0..targets).map(|_| OpenTurns::default()).collect(),
            recorder: recorder.with_goodput(goodput),
            conversations: Conversations::default(),
            tasks: TaskTally::default(),
            counted_from: origin,
            causes: Causes::default(),
            servers: vec![None; targets],
            until_answered: None,
        }
    }

    /// Counts a turn that is scheduled: from here on it is accounted for.
    pub(crate) fn scheduled(&mut self, sample: &Sample, at: Moment) {
        self.in_flight.inc(at);
        let second = self.second_of(sample);
        self.open[sample.target.index()].inc(second);
        self.recorder.scheduled_in(GroupKey::for_sample(sample));
    }

    /// A turn ended at `at`: it is in flight no longer.
    pub(crate) fn ended(&mut self, sample: &Sample, at: Moment) {
        self.in_flight.dec(at);
        let second = self.second_of(sample);
        self.open[sample.target.index()].dec(second);
        if self.until_answered.is_some() && is_answered(sample.outcome) {
            self.until_answered = Some(self.answered(at));
        }
    }

    /// The second of the run for which a turn is intended.
    fn second_of(&self, sample: &Sample) -> usize {
        let offset = sample.timeline.intended.since(self.origin).as_u64();
        usize::try_from(offset / 1_000_000_000).unwrap_or(0)
    }

    /// By target: turns that were intended before this moment have ended, if any is in flight.
    pub(crate) fn oldest_open(&self) -> Vec<Option<Nanos>> {
        self.open.iter().map(|open| open.oldest().map(Nanos::from_secs)).collect()
    }

    /// The load ends at `at`: answers that come later count to no stage's throughput.
    pub(crate) fn end_early(&mut self, at: Moment) {
        self.recorder.end_early(at);
        self.in_flight.end_early(at);
    }

    /// No request is sent from `at` on, and the load lasts until the last answer.
    pub(crate) fn lasts_until_answered(&mut self, at: Moment) {
        if self.until_answered.is_none() {
            self.until_answered = Some(self.answered(at));
        }
    }

    /// An answer that came at `at` may be the last one.
    fn answered(&mut self, at: Moment) -> LoadEnd {
        LoadEnd { at, in_flight: self.in_flight_by_stage(at) }
    }

    /// The end of the load, which would have been at `planned`; all of it is counted at `now`.
    pub(crate) fn take_end(&mut self, planned: Moment, now: Moment) -> LoadEnd {
        match (self.recorder.ended_early(), self.until_answered.take()) {
            (None, Some(last)) => last,
            (early, _) => {
                let at = early.unwrap_or(planned);
                LoadEnd { at, in_flight: self.in_flight_by_stage(now) }
            }
        }
    }

    /// Records a turn that is over.
    pub(crate) fn record(&mut self, sample: &Sample, extras: &TurnExtras) {
        self.recorder.record(sample, &extras.gaps, &extras.late_reads);
        if let Some(parts) = &extras.parts {
            self.recorder.record_parts(sample, parts);
        }
        if sample.as_expected() != Some(true) {
            self.count_cause(sample, extras.row.error_detail.as_deref());
        }
    }

    /// Records the task of an agent that is over.
    pub(crate) fn record_task(&mut self, task: &TaskSample) {
        self.tasks.record(task);
    }

    /// The tasks of the run's agents.
    pub(crate) fn take_tasks(&mut self) -> TaskTally {
        std::mem::take(&mut self.tasks)
    }

    /// Counts a redirect that is followed, to this URL.
    pub(crate) fn note_redirect(&mut self, sample: &Sample, to: &str) {
        self.add_cause(FOLLOWED_REDIRECTS, sample, to);
    }

    /// Counts a request of a measured stage.
    #[cold]
    pub(crate) fn add_cause(&mut self, kind: &str, sample: &Sample, message: &str) {
        if !sample.warmup {
            self.causes.entry(kind.to_owned()).or_default().add(sample.target, message);
        }
    }

    fn count_cause(&mut self, sample: &Sample, detail: Option<&str>) {
        let cause = match sample.outcome {
            _ if !sample.is_unexpected() => return,
            Outcome::Failed(class) => class.name().to_owned(),
            Outcome::Rejected(status) => format!("status {status}"),
            _ => return,
        };
        self.add_cause(&cause, sample, detail.unwrap_or_default());
    }

    /// Counts the requests of users that a warm-up left in flight; `apart` to the warm-up alone.
    pub(crate) fn count_warmup(&mut self, apart: bool) {
        self.recorder.count_warmup(apart);
    }

    /// Counts since the last call, up to `at`.
    pub(crate) fn take_snapshot(&mut self, at: Moment) -> Snapshot {
        self.counted_from = at;
        self.recorder.take()
    }

    /// When the last snapshot was taken; before the first one the run's start.
    pub(crate) const fn counted_from(&self) -> Moment {
        self.counted_from
    }

    /// Reasons why requests of the measured stages did not complete.
    pub(crate) fn take_causes(&mut self) -> Causes {
        std::mem::take(&mut self.causes)
    }

    /// Turns that are scheduled and not recorded.
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight.now()
    }

    /// The same by stage, up to `at`.
    pub(crate) fn in_flight_by_stage(&mut self, at: Moment) -> Vec<StageInFlight> {
        self.in_flight.advance(at);
        self.in_flight.stages().to_vec()
    }

    pub(crate) const fn conversation_started(&mut self) {
        self.conversations.started += 1;
    }

    /// Counts the time that a user waited because the target asked for it.
    pub(crate) fn waited_as_asked(&mut self, wait: Nanos) {
        self.conversations.retry_after_waits += 1;
        self.conversations.retry_after_wait_s += wait.as_secs_f64();
    }

    pub(crate) const fn conversation_finished(&mut self) {
        self.conversations.finished += 1;
    }

    /// Conversations of the run; those that began and did not finish ended early.
    pub(crate) fn conversations(&self) -> Conversations {
        let count = self.conversations;
        Conversations { ended_early: count.started.saturating_sub(count.finished), ..count }
    }

    /// Notes the `Server` header of a target's first response.
    pub(crate) fn note_server(&mut self, target: TargetId, head: &ResponseHead<'_>) {
        if let Some(server @ None) = self.servers.get_mut(target.index()) {
            *server = Some(head.header("server").unwrap_or_default().to_owned());
        }
    }

    /// `Server` headers by target; empty where the target sent none.
    pub(crate) fn take_servers(&mut self) -> Vec<Option<String>> {
        std::mem::take(&mut self.servers)
    }
}

// The number of turns in flight, integrated over time.

/// Turns in flight, from their schedule to their record, and the integral over time by stage, for
/// Little's law. It is taken from the clock when a turn begins and ends, independent of the times
/// in the samples.
#[derive(Debug)]
pub(crate) struct InFlightIntegral {
    now: u64,
    /// Up to here the integral has been taken.
    since: Moment,
    stages: Vec<StageInFlight>,
}

/// Turns in flight by the second of the run for which they were intended.
#[derive(Debug, Default)]
pub(crate) struct OpenTurns(Vec<u32>);

impl OpenTurns {
    /// One turn more.
    pub(crate) fn inc(&mut self, second: usize) {
        if self.0.len() <= second {
            self.0.resize(second + 1, 0);
        }
        self.0[second] += 1;
    }

    /// One turn less.
    pub(crate) fn dec(&mut self, second: usize) {
        if let Some(open) = self.0.get_mut(second) {
            *open = open.saturating_sub(1);
        }
    }

    /// The second of the oldest one.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.0.iter().position(|open| *open > 0).map(|second| second as u64)
    }
}

/// Turns in flight during one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageInFlight {
    /// End of the stage.
    end: Moment,
    /// Integral over time, in turns times nanoseconds.
    pub(crate) area: u128,
    /// Most turns at once.
    pub(crate) peak: u64,
}

impl InFlightIntegral {
    /// No turn in flight; stages begin at `start` and end at `ends`.
    pub(crate) fn new(start: Moment, ends: impl IntoIterator<Item = Moment>) -> Self {
        let stages = ends.into_iter().map(|end| StageInFlight { end, ..StageInFlight::default() });
        Self { now: 0, since: start, stages: stages.collect() }
    }

    /// Turns in flight now.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The stages in order.
    pub(crate) fn stages(&self) -> &[StageInFlight] {
        &self.stages
    }

    /// The load ends at `at`, before the stages do: requests in flight later count toward no stage.
    pub(crate) fn end_early(&mut self, at: Moment) {
        self.stages.iter_mut().for_each(|stage| stage.end = stage.end.min(at));
    }

    /// One turn more from `at` on.
    pub(crate) fn inc(&mut self, at: Moment) {
        self.advance(at);
        self.now += 1;
        let now = self.now;
        if let Some(stage) = self.current() {
            stage.peak = stage.peak.max(now);
        }
    }

    /// One turn less from `at` on.
    pub(crate) fn dec(&mut self, at: Moment) {
        self.advance(at);
        self.now = self.now.saturating_sub(1);
    }

    /// Takes the integral up to `at`, and assigns each stage its part.
    pub(crate) fn advance(&mut self, at: Moment) {
        let now = self.now;
        while self.since < at {
            let Some(stage) = self.current() else { break };
            let until = at.min(stage.end);
            let from = std::mem::replace(&mut self.since, until);
            if let Some(stage) = self.stage_at(from) {
                stage.area += u128::from(now) * u128::from(until.since(from).as_u64());
            }
            // Turns that are carried over count towards the next stage's peak.
            if let Some(stage) = self.current() {
                stage.peak = stage.peak.max(now);
            }
        }
        self.since = self.since.max(at);
    }

    fn current(&mut self) -> Option<&mut StageInFlight> {
        self.stage_at(self.since)
    }

    fn stage_at(&mut self, moment: Moment) -> Option<&mut StageInFlight> {
        let index = self.stages.partition_point(|stage| stage.end <= moment);
        self.stages.get_mut(index)
    }
}

impl StageInFlight {
    /// Adds up one stage over several workers. The sum of their peaks bounds the peak from above.
    pub(crate) fn sum<'w>(workers: impl Iterator<Item = &'w [Self]>, stage: StageId) -> Self {
        workers.filter_map(|stages| stages.get(stage.index())).fold(Self::default(), |sum, part| {
            Self { end: part.end, area: sum.area + part.area, peak: sum.peak + part.peak }
        })
    }
}

// Turns that are over and not yet recorded.

/// Turns that are recorded together. The counts and histograms that a turn changes are in several
/// KiB of memory, which then come into the processor's cache once for all of them.
const TOGETHER: usize = 16;

/// Additional data of a turn besides its sample; most turns have none.
#[derive(Debug, Default)]
pub(crate) struct TurnExtras {
    /// The gaps of its stream.
    pub(crate) gaps: Vec<Nanos>,
    /// The late reads of its stream.
    pub(crate) late_reads: Vec<LateRead>,
    /// Parts of the target's time, if the response names any.
    pub(crate) parts: Option<Box<ServerParts>>,
    /// Additional data of its row.
    pub(crate) row: RowExtras,
}

impl TurnExtras {
    fn is_empty(&self) -> bool {
        let Self { gaps, late_reads, parts, row } = self;
        // Reuses the allocation even when there are no gaps.
        let has_time = gaps.capacity() > 0 || !late_reads.is_empty() || parts.is_some();
        !has_time && row.is_empty()
    }
}

/// Turns that wait to be recorded, in the order in which they ended.
#[derive(Debug, Default)]
pub(crate) struct FinishedTurns {
    samples: Vec<Sample>,
    /// Data of some samples, by index in `samples`, ascending.
    extras: Vec<(usize, TurnExtras)>,
}

impl FinishedTurns {
    /// Adds a turn that ended. Whether there are enough of them to be recorded.
    pub(crate) fn push(&mut self, sample: &Sample, extras: TurnExtras) -> bool {
        if !extras.is_empty() {
            self.extras.push((self.samples.len(), extras));
        }
        self.samples.push(*sample);
        self.samples.len() >= TOGETHER
    }

    /// Takes every turn, the oldest first.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(&mut Sample, TurnExtras)) {
        let mut extras = self.extras.drain(..).peekable();
        for (index, sample) in self.samples.iter_mut().enumerate() {
            let of_turn = extras.next_if(|(of, _)| *of == index).map(|(_, extras)| extras);
            take(sample, of_turn.unwrap_or_default());
        }
        drop(extras);
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Nanos;

    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    #[test]
    fn the_oldest_turn_is_that_of_the_earliest_second() {
        let mut open = OpenTurns::default();
        assert_eq!(open.oldest(), None);
        for second in [3, 1, 1, 7] {
            open.inc(second);
        }
        assert_eq!(open.oldest(), Some(1));
        for second in [1, 1, 3] {
            open.dec(second);
        }
        assert_eq!(open.oldest(), Some(7));
        open.dec(7);
        assert_eq!(open.oldest(), None);
    }

    #[test]
    fn the_integral_is_split_where_one_stage_ends_and_the_next_begins() {
        let mut in_flight = InFlightIntegral::new(at(0), [at(100), at(200)]);
        in_flight.inc(at(10));
        in_flight.inc(at(60));
        in_flight.dec(at(150));
        in_flight.dec(at(250));
        let areas: Vec<_> =
            in_flight.stages().iter().map(|stage| (stage.area / 1_000_000, stage.peak)).collect();
        // 50 ms x 1 + 40 ms x 2, then 50 ms x 2 + 50 ms x 1; time after the last stage counts
        // nowhere.
        assert_eq!(areas, [(130, 2), (150, 2)]);
        assert_eq!(in_flight.now(), 0);
    }
}

#[cfg(test)]
mod finished_turns_tests {
    use super::*;

    fn sample(number: u64) -> Sample {
        Sample { bytes_out: number, ..Sample::unsent(Moment::EPOCH) }
    }

    #[test]
    fn turns_come_back_in_their_order_each_with_its_own_extras() {
        let mut turns = FinishedTurns::default();
        for round in 0..2 {
            for number in 0..TOGETHER as u64 {
                let error_detail = (number % 5 == 3).then(|| format!("{round} {number}"));
                let row = RowExtras { error_detail, ..RowExtras::default() };
                let extras = TurnExtras { row, ..TurnExtras::default() };
                let enough = turns.push(&sample(number), extras);
                assert_eq!(enough, number + 1 == TOGETHER as u64);
            }
            let mut seen = Vec::new();
            turns.drain(|sample, extras| {
                seen.push((sample.bytes_out, extras.row.error_detail));
            });
            assert_eq!(
                seen,
                (0..TOGETHER as u64)
                    .map(|number: u64| {
                        let detail =
                            [3, 8, 13].contains(&number).then(|| format!("{round} {number}"));
                        (number, detail)
                    })
                    .collect::<Vec<_>>()
            );
            turns.drain(|_, _| panic!("each once"));
        }
    }
}
