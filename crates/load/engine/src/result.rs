//! The result of a run, merged from the results of its workers.

use plimsoll_measure::{Moment, Nanos, StageId, TargetId};
use plimsoll_metrics::{
    Conversations, Distribution, ExemplarKeeper, Exemplars, InstrumentHealth, Lag, LoadModel,
    ProcessTrack, ProcessUse, RunMetadata, ServerTrack, Snapshot, StageResources, TaskTally,
    TimeSeries,
};
use plimsoll_plan::Instrument;
use plimsoll_transport::ReadCounts;

use crate::health::HostLog;
use crate::in_flight::StageInFlight;
use crate::pairs::BlockReport;
use crate::sink::{Sink, SinkReport};
use crate::stall_windows;
use crate::worker_stats::Causes;
use crate::worker_thread::WorkerOutput;

/// A reason why requests did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Error class, or `status N` of a refusal.
    pub kind: String,
    /// Number of requests.
    pub count: u64,
    /// The first message of each target that gave one, in the order of their first failures.
    pub first: Vec<(TargetId, String)>,
}

impl Cause {
    /// The message of the first request; `None` if none gave one.
    pub fn message(&self) -> Option<&str> {
        self.first.first().map(|(_, message)| &**message)
    }

    /// The first message of one target.
    pub fn message_of(&self, target: TargetId) -> Option<&str> {
        self.first.iter().find(|(of, _)| *of == target).map(|(_, message)| &**message)
    }
}

/// Everything that was measured in a run.
#[derive(Debug)]
pub struct RunResult {
    /// Counters and distributions.
    pub snapshot: Snapshot,
    /// Names, stages as they were carried out, targets. The caller adds environment and notes.
    pub metadata: RunMetadata,
    /// Measurements of the generator itself.
    pub health: InstrumentHealth,
    /// CPU time and memory of the watched processes.
    pub processes: Vec<ProcessUse>,
    /// Usage of this host by each measured stage.
    pub resources: Vec<StageResources>,
    /// Counts and times by second.
    pub series: TimeSeries,
    /// The CPU time of the watched processes over time.
    pub tracks: Vec<ProcessTrack>,
    /// The metrics of servers over time.
    pub servers: Vec<ServerTrack>,
    /// Reasons why requests did not complete, the most frequent first.
    pub causes: Vec<Cause>,
    /// Description of the spent budget, if it is limited and did not end the run.
    pub spent: Option<String>,
    /// Why the run was stopped before its end: no request succeeded any more, or a budget is spent.
    pub stopped: Option<String>,
    /// Tasks of agents.
    pub tasks: TaskTally,
    /// The slowest requests and random ones, with all their times.
    pub exemplars: Exemplars,
    /// Counts of the samples: written, left out, lost.
    pub sink: SinkReport,
    /// Counts of the blocks of a comparison.
    pub blocks: BlockReport,
    /// By target: when it was taken out of the comparison, after the run's start.
    pub taken_out: Vec<Option<Nanos>>,
}

impl RunResult {
    /// Merges the workers' results into `snapshot`, which holds their counts up to the last
    /// interval.
    pub(crate) fn from_workers(
        mut metadata: RunMetadata,
        instrument: Instrument,
        origin: Moment,
        mut snapshot: Snapshot,
        host: &HostLog,
        mut workers: Vec<WorkerOutput>,
    ) -> Self {
        finish_stages(&mut metadata, origin, &workers);
        for worker in &mut workers {
            let servers = std::mem::take(&mut worker.servers);
            for (target, server) in metadata.targets.iter_mut().zip(servers) {
                target.server = target.server.take().or(server).filter(|name| !name.is_empty());
            }
        }
        count_connections(&mut metadata, &workers);
        let mut health = health(&workers, instrument);
        let pauses: Vec<_> =
            workers.iter_mut().map(|worker| std::mem::take(&mut worker.pauses)).collect();
        stall_windows::fill(&mut health, origin, &pauses, host);
        let peaks = metadata.stages.iter().filter_map(|stage| stage.peak_in_flight);
        health.peak_in_flight = peaks.max();
        let (mut rest, mut causes) = (Snapshot::new(), Causes::new());
        let mut tasks = TaskTally::default();
        let mut exemplars: Option<ExemplarKeeper> = None;
        for worker in workers {
            match &mut exemplars {
                Some(all) => all.merge(worker.exemplars),
                None => exemplars = Some(worker.exemplars),
            }
            rest.merge(worker.snapshot);
            tasks.merge(&worker.tasks);
            merge_causes(&mut causes, worker.causes);
        }
        snapshot.append(rest);
        count_arrivals(&mut health, &snapshot);
        health.pacing_lag_ms = pacing_lag(&snapshot);
        Self {
            snapshot,
            metadata,
            health,
            processes: Vec::new(),
            resources: Vec::new(),
            series: TimeSeries::default(),
            tracks: Vec::new(),
            servers: Vec::new(),
            causes: by_frequency(causes),
            spent: None,
            stopped: None,
            tasks,
            exemplars: exemplars.map(ExemplarKeeper::finish).unwrap_or_default(),
            sink: SinkReport::default(),
            blocks: BlockReport::default(),
            taken_out: Vec::new(),
        }
    }

    /// Waits until every sample is written, and adds the counts.
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

/// Counts the connections of all workers by the target's addresses, and by the parameters
/// negotiated in their handshakes.
fn count_connections(metadata: &mut RunMetadata, workers: &[WorkerOutput]) {
    let of_workers = workers.iter().flat_map(|worker| worker.addresses.iter().enumerate());
    for (index, addresses) in of_workers {
        let Some(target) = metadata.targets.get_mut(index) else { continue };
        for (address, connections) in addresses {
            *target.addresses.entry(address.to_string()).or_default() += connections;
        }
    }
    let of_workers = workers.iter().flat_map(|worker| worker.negotiated.iter().enumerate());
    for (index, negotiated) in of_workers {
        let Some(target) = metadata.targets.get_mut(index) else { continue };
        for (agreed, connections) in negotiated {
            *target.tls.entry(agreed.clone()).or_default() += connections;
        }
    }
}

/// Fills in how the stages were carried out. Their starts become offsets from the clock's epoch,
/// like the times in samples.
fn finish_stages(metadata: &mut RunMetadata, origin: Moment, workers: &[WorkerOutput]) {
    let end = workers.iter().map(|worker| worker.end).max().unwrap_or(origin);
    let end = end.since(origin).as_secs_f64();
    let begin = workers.iter().find_map(|worker| worker.begin);
    let begin = begin.map(|begin: Moment| begin.since(origin).as_secs_f64());
    for (index, stage) in metadata.stages.iter_mut().enumerate() {
        stage.duration_s = stage.duration_s.min((end - stage.start_s).max(0.0));
        let nanos = stage.duration_s * 1e9;
        let skipped = begin.map_or(0.0, |begin| begin - stage.start_s);
        if !stage.warmup && stage.model == LoadModel::Closed && skipped < stage.duration_s {
            stage.duration_s -= skipped.max(0.0);
            stage.start_s += skipped.max(0.0);
        }
        stage.start_s += origin.since(Moment::EPOCH).as_secs_f64();
        let id = StageId(u16::try_from(index).unwrap_or(u16::MAX));
        let in_flight = StageInFlight::sum(workers.iter().map(|worker| &*worker.in_flight), id);
        stage.peak_in_flight = Some(in_flight.peak);
        stage.mean_in_flight = (nanos > 0.0).then(|| in_flight.area as f64 / nanos);
    }
}

/// Measurements of the workers themselves.
fn health(workers: &[WorkerOutput], instrument: Instrument) -> InstrumentHealth {
    let mut health = InstrumentHealth {
        workers: u32::try_from(workers.len()).ok(),
        timer: Some(timer(instrument)),
        ..InstrumentHealth::default()
    };
    let mut conversations = Conversations::default();
    let mut reads = ReadCounts::default();
    for worker in workers {
        reads.all += worker.reads.all;
        reads.unstamped += worker.reads.unstamped;
        health.worker_cpu_shares.push(worker.cpu_share);
        health.worker_cpus.extend(worker.cpu.and_then(|cpu| u32::try_from(cpu).ok()));
        health.worker_wait_shares.push(worker.wait_share);
        *health.connections_before_run.get_or_insert(0) += worker.opened_ahead.opened;
        *health.connections_before_run_failed.get_or_insert(0) += worker.opened_ahead.failed;
        conversations.started += worker.conversations.started;
        conversations.finished += worker.conversations.finished;
        conversations.ended_early += worker.conversations.ended_early;
        conversations.retry_after_waits += worker.conversations.retry_after_waits;
        conversations.retry_after_wait_s += worker.conversations.retry_after_wait_s;
    }
    health.kernel_timestamps = (reads.all > 0).then(|| are_stamped(reads));
    (health.reads, health.unstamped_reads) = (Some(reads.all), Some(reads.unstamped));
    health.conversations = Some(conversations);
    health
}

/// How much earlier a generator that is never late would have dispatched the arrivals.
fn pacing_lag(snapshot: &Snapshot) -> Option<Lag> {
    let mut lag = Distribution::default();
    let of_cells = snapshot.cells().filter_map(|(_, cell)| cell.pacing_lag());
    of_cells.for_each(|of_cell| lag.merge(of_cell));
    Lag::from_distribution(&lag)
}

/// Whether the kernel stamped at least 99 % of the reads.
const fn are_stamped(reads: ReadCounts) -> bool {
    reads.unstamped * 100 <= reads.all
}

/// Fills in the arrivals of the open model.
fn count_arrivals(health: &mut InstrumentHealth, snapshot: &Snapshot) {
    let (mut planned, mut late) = (0, 0);
    for (_, cell) in snapshot.cells() {
        planned += cell.counters().arrivals_planned;
        late += cell.counters().arrivals_late_by_generator;
    }
    if planned > 0 {
        health.planned_arrivals = Some(planned);
        health.achieved_arrivals = Some(planned.saturating_sub(late));
    }
}

/// The way the workers wait for deadlines, in words.
fn timer(instrument: Instrument) -> String {
    match instrument.spin {
        Nanos::ZERO => "timerfd, nanosecond deadlines, no spinning".to_owned(),
        spin => {
            format!("timerfd, nanosecond deadlines, the last {spin} (at most a tenth) by spinning")
        }
    }
}

fn merge_causes(causes: &mut Causes, more: Causes) {
    for (kind, tally) in more {
        causes.entry(kind).or_default().merge(tally);
    }
}

fn by_frequency(causes: Causes) -> Vec<Cause> {
    let mut causes: Vec<_> = causes
        .into_iter()
        .map(|(kind, tally)| Cause { kind, count: tally.count, first: tally.first })
        .collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    causes
}
