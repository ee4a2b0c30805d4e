//! The counters of one worker.

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, Nanos, Outcome, RequestBounds, Sample, TargetId, TaskSample};
use plimsoll_metrics::{Conversations, GroupKey, Recorder, Snapshot, TaskTally};
use plimsoll_transport::ResponseHead;

use crate::finished_turns::TurnExtras;
use crate::in_flight::{InFlightIntegral, OpenTurns, StageInFlight};

/// Reasons why requests did not complete, by kind.
pub(crate) type Causes = BTreeMap<String, CauseTally>;

/// The requests that one reason kept from completing.
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

/// The kind of cause under which answers with usage that cannot be true are counted. They may have
/// completed.
pub const REFUSED_USAGE: &str = "usage";

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

    /// Counts an answer with usage that cannot be true; `example` is one of its counts.
    #[cold]
    pub(crate) fn note_refused_usage(&mut self, sample: &Sample, example: &str) {
        self.add_cause(REFUSED_USAGE, sample, example);
    }

    /// Counts a redirect that is followed, to this URL.
    pub(crate) fn note_redirect(&mut self, sample: &Sample, to: &str) {
        self.add_cause(FOLLOWED_REDIRECTS, sample, to);
    }

    /// Counts a request of a measured stage.
    fn add_cause(&mut self, kind: &str, sample: &Sample, message: &str) {
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
