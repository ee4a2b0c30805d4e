//! The counters of one worker.

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, Nanos, Outcome, Sample, TargetId};
use plimsoll_metrics::{Conversations, Distribution, Recorder, Snapshot};
use plimsoll_transport::ResponseHead;

use crate::in_flight::{InFlightIntegral, StageInFlight};

/// Reasons why requests did not complete, each with its count and the message of the first request.
pub(crate) type Causes = BTreeMap<String, (u64, String)>;

/// Numbers of arrivals of the open model: planned, and released within their stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArrivalCounts {
    pub(crate) planned: u64,
    pub(crate) in_time: u64,
}

/// Counts of one worker, over the run or since the last snapshot.
#[derive(Debug)]
pub(crate) struct WorkerStats {
    recorder: Recorder,
    in_flight: InFlightIntegral,
    conversations: Conversations,
    pacing_lag: Distribution,
    arrivals: ArrivalCounts,
    causes: Causes,
    /// `Server` headers by target, from the first responses.
    servers: Vec<Option<String>>,
}

impl WorkerStats {
    /// Nothing counted yet; the stages begin at `origin` and end at `stage_ends`.
    pub(crate) fn new(origin: Moment, stage_ends: Vec<Moment>, targets: usize) -> Self {
        Self {
            in_flight: InFlightIntegral::new(origin, stage_ends.iter().copied()),
            recorder: Recorder::new(stage_ends),
            conversations: Conversations::default(),
            pacing_lag: Distribution::default(),
            arrivals: ArrivalCounts::default(),
            causes: Causes::default(),
            servers: vec![None; targets],
        }
    }

    /// Counts a turn that is scheduled: from here on it is accounted for.
    pub(crate) fn scheduled(&mut self, sample: &Sample, at: Moment) {
        self.in_flight.inc(at);
        self.recorder.scheduled(sample.stage, sample.scenario, sample.target);
    }

    /// Records a turn that is over; `detail` is the message of its failure.
    pub(crate) fn record(
        &mut self,
        sample: &Sample,
        gaps: &[Nanos],
        detail: Option<String>,
        at: Moment,
    ) {
        self.in_flight.dec(at);
        self.recorder.record(sample, gaps);
        if sample.as_expected() != Some(true) {
            self.count_cause(sample.outcome, detail);
        }
    }

    fn count_cause(&mut self, outcome: Outcome, detail: Option<String>) {
        let cause = match outcome {
            Outcome::Failed(class) => class.name().to_owned(),
            Outcome::Rejected(status) => format!("status {status}"),
            _ => return,
        };
        let (count, first) = self.causes.entry(cause).or_default();
        *count += 1;
        if first.is_empty() {
            *first = detail.unwrap_or_default();
        }
    }

    /// Counts since the last call.
    pub(crate) fn take_snapshot(&mut self) -> Snapshot {
        self.recorder.take()
    }

    /// Reasons why requests did not complete, over the whole run.
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

    /// Counts an arrival that was released `late` by the pacer's own fault.
    pub(crate) fn arrival_released(&mut self, late: Nanos, in_time: bool) {
        self.pacing_lag.record(late);
        self.count_arrival(in_time);
    }

    /// Counts an arrival of the schedule.
    pub(crate) fn count_arrival(&mut self, in_time: bool) {
        self.arrivals.planned += 1;
        self.arrivals.in_time += u64::from(in_time);
    }

    pub(crate) const fn arrivals(&self) -> ArrivalCounts {
        self.arrivals
    }

    /// Delays of the released arrivals, as far as the pacer caused them.
    pub(crate) fn take_pacing_lag(&mut self) -> Distribution {
        std::mem::take(&mut self.pacing_lag)
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
