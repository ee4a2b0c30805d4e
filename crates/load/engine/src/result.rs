//! What a run brings home.

use plimsoll_measure::{Moment, Nanos, StageId};
use plimsoll_metrics::{
    Conversations, Distribution, InstrumentHealth, Lag, ProcessUse, RunMetadata, Snapshot,
};
use plimsoll_profile::Instrument;

use crate::presence::Presence;
use crate::sink::{Sink, SinkReport};
use crate::work::Done;
use crate::worker::Causes;

/// Why requests did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Error class, or `status N` of a refusal.
    pub kind: String,
    /// How often.
    pub count: u64,
    /// What the first of them said; empty if nothing.
    pub first: String,
}

/// Everything that was measured in a run.
#[derive(Debug)]
pub struct RunResult {
    /// Counters and distributions.
    pub snapshot: Snapshot,
    /// Names, stages as they were played, targets. Environment and notes are the caller's to add.
    pub facts: RunMetadata,
    /// What the instrument measured of itself.
    pub health: InstrumentHealth,
    /// What the watched processes used.
    pub processes: Vec<ProcessUse>,
    /// Why requests did not complete, the most frequent first.
    pub causes: Vec<Cause>,
    /// What became of the samples that were to be written.
    pub sink: SinkReport,
}

impl RunResult {
    /// Waits until every sample is written.
    pub(crate) fn close_sink(&mut self, sink: Option<Sink>) {
        let Some(sink) = sink else { return };
        self.sink = sink.finish();
        self.health.sink_offered = Some(self.sink.offered);
        self.health.sink_written = Some(self.sink.written);
        self.health.sink_left_out = Some(self.sink.left_out);
        self.health.sink_least_share_one_in = Some(self.sink.least_share_one_in);
        self.health.sink_overflowed = Some(self.sink.overflowed);
    }
}

/// Puts together what the workers brought home.
pub(crate) fn assemble(
    mut facts: RunMetadata,
    instrument: Instrument,
    origin: Moment,
    mut snapshot: Snapshot,
    done: Vec<Done>,
) -> RunResult {
    // Offsets of the stages are told since the clock's epoch, as samples are.
    let end =
        done.iter().map(|done| done.until).max().unwrap_or(origin).since(origin).as_secs_f64();
    let presence: Vec<_> = done.iter().map(|done| done.presence.clone()).collect();
    for (index, stage) in facts.stages.iter_mut().enumerate() {
        stage.duration_s = stage.duration_s.min((end - stage.start_s).max(0.0));
        stage.start_s += origin.since(Moment::EPOCH).as_secs_f64();
        let seen = Presence::sum(&presence, StageId(u16::try_from(index).unwrap_or(u16::MAX)));
        stage.peak_in_flight = Some(seen.peak);
        let nanos = stage.duration_s * 1e9;
        stage.mean_in_flight = (nanos > 0.0).then(|| seen.area as f64 / nanos);
    }
    let mut health = InstrumentHealth {
        workers: u32::try_from(done.len()).ok(),
        peak_in_flight: facts.stages.iter().filter_map(|stage| stage.peak_in_flight).max(),
        timer: Some(timer(instrument)),
        kernel_timestamps: Some(instrument.kernel_timestamps),
        ..InstrumentHealth::default()
    };
    let mut causes = Causes::new();
    let (mut lag, mut conversations) = (Distribution::default(), Conversations::default());
    let mut arrivals = (0, 0);
    let mut rest = Snapshot::new();
    for done in done {
        rest.merge(done.snapshot);
        lag.merge(&done.pacing_lag);
        arrivals = (arrivals.0 + done.arrivals.0, arrivals.1 + done.arrivals.1);
        health.worker_cpu_shares.push(done.cpu_share);
        health.worker_cpus.extend(done.cpu.and_then(|cpu| u32::try_from(cpu).ok()));
        health.worker_wait_shares.push(done.wait_share);
        conversations.started += done.conversations.started;
        conversations.finished += done.conversations.finished;
        conversations.ended_early += done.conversations.ended_early;
        merge_causes(&mut causes, done.causes);
        for (target, server) in facts.targets.iter_mut().zip(done.servers) {
            target.server = target.server.take().or(server).filter(|server| !server.is_empty());
        }
    }
    snapshot.append(rest);
    let open = arrivals.0 > 0;
    health.planned_arrivals = open.then_some(arrivals.0);
    health.achieved_arrivals = open.then_some(arrivals.1);
    health.pacing_lag_ms = Lag::of(&lag);
    health.conversations = Some(conversations);
    RunResult {
        snapshot,
        facts,
        health,
        processes: Vec::new(),
        causes: by_frequency(causes),
        sink: SinkReport::default(),
    }
}

/// How deadlines are waited for.
fn timer(instrument: Instrument) -> String {
    match instrument.spin {
        Nanos::ZERO => "timerfd, nanosecond deadlines, no spinning".to_owned(),
        spin => {
            format!("timerfd, nanosecond deadlines, the last {spin} (at most a tenth) by spinning")
        }
    }
}

fn merge_causes(causes: &mut Causes, more: Causes) {
    for (kind, (count, first)) in more {
        let cause = causes.entry(kind).or_default();
        cause.0 += count;
        if cause.1.is_empty() {
            cause.1 = first;
        }
    }
}

fn by_frequency(causes: Causes) -> Vec<Cause> {
    let mut causes: Vec<_> =
        causes.into_iter().map(|(kind, (count, first))| Cause { kind, count, first }).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    causes
}
