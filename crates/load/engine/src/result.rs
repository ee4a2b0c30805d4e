//! The result of a run, merged from the results of its workers.

use plimsoll_measure::{Moment, Nanos, StageId, TargetId};
use plimsoll_metrics::{
    Conversations, Distribution, DisturbedWindow, InstrumentHealth, Lag, LoadModel, ProcessTrack,
    ProcessUse, RunMetadata, ServerTrack, Snapshot, StageResources, TaskTally, TimeSeries,
};
use plimsoll_plan::Instrument;
use plimsoll_transport::ReadCounts;

use crate::health::HostLog;
use crate::loop_watch::{Pause, Pauses};
use crate::pairs::BlockReport;
use crate::sink::{Sink, SinkReport};
use crate::worker_stats::{Causes, StageInFlight};
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
        fill(&mut health, origin, &pauses, host);
        let peaks = metadata.stages.iter().filter_map(|stage| stage.peak_in_flight);
        health.peak_in_flight = peaks.max();
        let (mut rest, mut causes) = (Snapshot::new(), Causes::new());
        let mut tasks = TaskTally::default();
        for worker in workers {
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

// The windows in which workers did not look at their sockets, with their known causes.

/// Windows that are reported; beyond it the longest.
const MAX_WINDOWS: usize = 200;
/// The share of a window that a worker was busy, or waited for a CPU, from which on that is named.
const NAMED_SHARE: f64 = 0.25;

/// Pauses of several workers that overlap.
#[derive(Clone, Debug, Default)]
struct Window {
    from: Moment,
    to: Moment,
    /// The workers.
    workers: Vec<usize>,
    /// Sums over their pauses.
    paused: Nanos,
    busy: Nanos,
    waited: Nanos,
}

impl Window {
    fn add(&mut self, worker: usize, pause: &Pause) {
        self.to = self.to.max(pause.to);
        if !self.workers.contains(&worker) {
            self.workers.push(worker);
        }
        self.paused += pause.length();
        self.busy += pause.busy;
        self.waited += pause.waited;
    }

    const fn length(&self) -> Nanos {
        self.to.since(self.from)
    }
}

/// Fills in the disturbed windows of a run that began at `origin`.
pub(crate) fn fill(
    health: &mut InstrumentHealth,
    origin: Moment,
    workers: &[Pauses],
    host: &HostLog,
) {
    let mut windows = merge(workers);
    let all = windows.len();
    windows.sort_by_key(|window| std::cmp::Reverse(window.length()));
    windows.truncate(MAX_WINDOWS);
    windows.sort_by_key(|window| window.from);
    let omitted = workers.iter().map(|pauses| pauses.omitted).sum::<u64>();
    health.disturbed_windows_omitted = Some(omitted + (all - windows.len()) as u64);
    health.disturbed_windows = windows.iter().map(|window| report(window, origin, host)).collect();
}

/// The pauses of all workers in the order of time, those that overlap in one window.
fn merge(workers: &[Pauses]) -> Vec<Window> {
    let mut pauses: Vec<(usize, &Pause)> = workers
        .iter()
        .enumerate()
        .flat_map(|(worker, pauses)| pauses.kept.iter().map(move |pause| (worker, pause)))
        .collect();
    pauses.sort_by_key(|(_, pause)| pause.from);
    let mut windows: Vec<Window> = Vec::new();
    for (worker, pause) in pauses {
        if windows.last().is_none_or(|last| last.to < pause.from) {
            windows.push(Window { from: pause.from, to: pause.to, ..Window::default() });
        }
        if let Some(window) = windows.last_mut() {
            window.add(worker, pause);
        }
    }
    windows
}

fn report(window: &Window, origin: Moment, host: &HostLog) -> DisturbedWindow {
    DisturbedWindow {
        start_s: window.from.since(origin).as_secs_f64(),
        length_s: window.length().as_secs_f64(),
        workers: u32::try_from(window.workers.len()).unwrap_or(u32::MAX),
        causes: causes(window, host),
    }
}

/// Description of the known causes.
fn causes(window: &Window, host: &HostLog) -> Vec<String> {
    let mut causes = Vec::new();
    let paused_s = window.paused.as_secs_f64().max(1e-9);
    let withheld: Vec<_> = host.during(window.from, window.to).collect();
    let stolen = withheld.iter().map(|period| period.stolen).fold(0.0, f64::max);
    if stolen > 0.0 {
        causes.push(format!("the hypervisor withheld {:.0} % of the CPU time", stolen * 100.0));
    }
    let throttled: Nanos = withheld.iter().map(|period| period.throttled).sum();
    if throttled > Nanos::ZERO {
        let ms = throttled.as_millis_f64();
        causes.push(format!("the CPU quota held the process up for {ms:.0} ms"));
    }
    if window.waited.as_secs_f64() / paused_s >= NAMED_SHARE {
        let ms = window.waited.as_millis_f64();
        causes.push(format!("workers waited {ms:.0} ms for a CPU"));
    }
    if window.busy.as_secs_f64() / paused_s >= NAMED_SHARE {
        let ms = window.busy.as_millis_f64();
        causes.push(format!("workers were busy for {ms:.0} ms"));
    }
    if causes.is_empty() {
        causes
            .push("workers neither ran nor waited for a CPU: was the process stopped?".to_owned());
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    fn pause(from: u64, to: u64, busy: u64, waited: u64) -> Pause {
        let (busy, waited) = (Nanos::from_millis(busy), Nanos::from_millis(waited));
        Pause { from: at(from), to: at(to), busy, waited }
    }

    fn filled(workers: &[Pauses]) -> InstrumentHealth {
        let mut health = InstrumentHealth::default();
        fill(&mut health, at(1_000), workers, &HostLog::default());
        health
    }

    #[test]
    fn pauses_of_several_workers_at_the_same_time_are_one_window() {
        let first = vec![pause(1_100, 1_200, 2, 80), pause(1_500, 1_510, 9, 0)];
        let second = vec![pause(1_150, 1_250, 1, 90), pause(1_900, 2_000, 0, 0)];
        let health = filled(&[first, second].map(|kept| Pauses { kept, omitted: 3 }));
        let found: Vec<_> = health
            .disturbed_windows
            .iter()
            .map(|window| (window.start_s, window.length_s, window.workers))
            .collect();
        assert_eq!(found, [(0.1, 0.15, 2), (0.5, 0.01, 1), (0.9, 0.1, 1)]);
        let causes: Vec<_> =
            health.disturbed_windows.iter().flat_map(|window| &window.causes).collect();
        assert_eq!(
            causes,
            [
                "workers waited 170 ms for a CPU",
                "workers were busy for 9 ms",
                "workers neither ran nor waited for a CPU: was the process stopped?"
            ]
        );
        assert_eq!(health.disturbed_windows_omitted, Some(6));
    }

    #[test]
    fn the_longest_windows_are_reported_in_the_order_of_time() {
        let kept = (0..250).map(|n| pause(n * 1_000, n * 1_000 + 2 + n % 7, 0, 0)).collect();
        let health = filled(&[Pauses { kept, omitted: 0 }]);
        assert_eq!(health.disturbed_windows.len(), MAX_WINDOWS);
        assert_eq!(health.disturbed_windows_omitted, Some(50));
        assert!(health.disturbed_windows.is_sorted_by_key(|window| window.start_s));
        // 36 of the 250 windows are 2 ms long; the 14 other missing ones are 3 ms long.
        let lengths = health.disturbed_windows.iter().map(|window| window.length_s * 1e3);
        assert!((2.9..3.1).contains(&lengths.fold(f64::MAX, f64::min)));
    }
}
