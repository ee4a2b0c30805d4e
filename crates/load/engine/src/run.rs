//! Carries a run out: from its plan to its result.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::{RunEnd, RunMetadata};
use plimsoll_plan::Plan;
use plimsoll_protocol::TokenLimit;
use plimsoll_schedule::{PairSchedule, Schedule};

use crate::control::{Control, Stop};
use crate::error::EngineError;
use crate::health::Baseline;
use crate::health::metrics_page::CpuReading;
use crate::health::page_watch::{PageWatch, WatchedPage};
use crate::health::process::WatchedProcess;
use crate::health::server_page::ServerReading;
use crate::metadata;
use crate::monitor::RunMonitor;
use crate::pairs::{BlockOutput, BlockSink};
use crate::prepared::PreparedRun;
use crate::probe::{self, ProbeReport};
use crate::progress::Progress;
use crate::result::RunResult;
use crate::sink::{SampleSink, Sink};
use crate::worker_share::{WorkerShare, cores, worker_count};
use crate::worker_thread::{
    self, Interval, RunContext, WorkerAssignment, WorkerOutput, run_worker,
};

/// A run that is ready to start.
#[derive(Debug)]
pub struct Run {
    prepared: Arc<PreparedRun>,
    clock: MonotonicClock,
    watched: Vec<WatchedProcess>,
    pages: Vec<WatchedPage>,
    servers: Vec<WatchedPage>,
    at_target: Option<u32>,
    blocks: BlockOutput,
    gate: Option<Box<dyn StartGate>>,
}

impl Run {
    /// Loads and checks everything that the plan names; no request is sent yet.
    ///
    /// # Errors
    /// Where the plan cannot be carried out.
    pub fn prepare(plan: Plan) -> Result<Self, EngineError> {
        let plan = without_contention(plan);
        let (prepared, clock) = (Arc::new(PreparedRun::new(plan)?), MonotonicClock::start());
        Ok(Self {
            prepared,
            clock,
            watched: Vec::new(),
            pages: Vec::new(),
            servers: Vec::new(),
            at_target: None,
            blocks: BlockOutput::default(),
            gate: None,
        })
    }

    /// Measures the CPU time and memory of these processes, and of this one, during the load.
    pub fn watch(&mut self, processes: Vec<WatchedProcess>) {
        self.watched = processes;
    }

    /// Reads these pages of metrics during the load: the usage of the processes of `pages`, as
    /// evidence for the bottleneck, and the figures of servers.
    pub fn watch_pages(&mut self, pages: Vec<WatchedPage>, servers: Vec<WatchedPage>) {
        (self.pages, self.servers) = (pages, servers);
    }

    /// Says which process listens at the target's address. Its usage is evidence for the
    /// bottleneck, even if it is not watched.
    pub const fn target_is(&mut self, pid: Option<u32>) {
        self.at_target = pid;
    }

    /// Hands over the blocks of a comparison as they come.
    pub fn record_blocks(&mut self, sink: Box<dyn BlockSink>) {
        self.blocks = BlockOutput::new(Some(sink));
    }

    /// Lets a gate decide when the run begins, instead of starting as soon as it is ready.
    pub fn begin_when(&mut self, gate: Box<dyn StartGate>) {
        self.gate = Some(gate);
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.prepared.schedule
    }

    /// How the targets of a comparison share the time; `None` for a run with one target.
    pub fn pairs(&self) -> Option<&PairSchedule> {
        self.prepared.pairs.as_ref()
    }

    /// Blocks that a comparison or its shard plans to compare in its measured stages; 0 for closed
    /// stages. It computes all of them.
    pub fn planned_blocks(&self) -> u64 {
        let stages = self.prepared.schedule.stages().iter().filter(|stage| !stage.warmup);
        let shard = self.prepared.plan.shard;
        self.pairs().map_or(0, |pairs: &PairSchedule| {
            stages.map(|stage| pairs.compared_blocks(shard, stage.id)).sum()
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// The run's clock. The moments in samples are read from it.
    pub const fn clock(&self) -> MonotonicClock {
        self.clock
    }

    /// The metadata known before the load: names, stages, targets.
    pub fn metadata(&self) -> RunMetadata {
        metadata::planned(&self.prepared, &self.clock)
    }

    /// A hash of the schedule. Shards of one run have the same.
    pub fn schedule_fingerprint(&self) -> u64 {
        self.prepared.schedule.fingerprint()
    }

    /// Sends one request per target and dialect, and reports problems that would make the load
    /// pointless. These requests are counted nowhere. Closed stages get as long as their answers
    /// need.
    ///
    /// # Errors
    /// Where the generator itself fails.
    pub fn probe(&mut self) -> Result<ProbeReport, EngineError> {
        let mut report = probe::probe(&self.prepared, self.clock)?;
        if let Some(finding) = report.other_limit.take() {
            let mut plan = self.plan().clone();
            for scenario in &mut plan.scenarios {
                scenario.max_tokens_field = TokenLimit::MaxCompletionTokens;
            }
            self.prepared = Arc::new(PreparedRun::new(plan)?);
            let before = report.requests;
            report = probe::probe(&self.prepared, self.clock)?;
            report.requests += before;
            report.findings.insert(0, finding);
        }
        // No other owner holds it before the load.
        if let Some(prepared) = Arc::get_mut(&mut self.prepared) {
            prepared.last_for_answers()?;
        }
        Ok(report)
    }

    /// Carries the run out, and returns when it is over. `observe` is called about once a second.
    /// It ends once no request has succeeded for 10 seconds, unless the plan allows failures or
    /// compares targets.
    ///
    /// # Errors
    /// Where the generator itself fails, or its gate does not let it begin; whatever the target
    /// does is part of the result.
    pub fn start(
        mut self,
        sink: Option<Box<dyn SampleSink>>,
        control: &Control,
        observe: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<RunResult, EngineError> {
        let ids = self.prepared.ids;
        let sink = sink.map(|sink| Sink::start(sink, ids)).transpose()?;
        let workers = WorkerThreads::spawn(&self.prepared, self.clock, control, sink.as_ref())?;
        let start = self.gate.as_mut().map(|gate| workers.ask(gate.as_mut())).transpose()?;
        let baseline = Baseline::read(&self.clock);
        let pages = PageWatch::<CpuReading>::start(&self.pages, self.clock);
        let servers = PageWatch::<ServerReading>::start(&self.servers, self.clock);
        let origin = start.map_or_else(|| workers.begin(), |start| workers.release(start));
        let mut monitor = RunMonitor::new(
            &self.prepared,
            self.clock,
            origin,
            &self.watched,
            self.at_target,
            control,
        );
        monitor.blocks = std::mem::take(&mut self.blocks);
        monitor.follow(&workers.intervals, &workers.threads, observe);
        let outputs = workers.join()?;
        for output in &outputs {
            monitor.blocks.write(&output.blocks);
            monitor.series.add_rest(output.counted_from, monitor.ended, &output.snapshot);
        }
        let (mut metadata, instrument) = (self.metadata(), self.plan().instrument);
        metadata.run.ended = match control.stop() {
            None => RunEnd::Complete,
            Some(Stop::Interrupted) => RunEnd::Interrupted,
            Some(Stop::TooManyErrors) => RunEnd::TooManyErrors,
            Some(Stop::Decided) => RunEnd::Decided,
        };
        // The same handle may belong to another run.
        control.recover();
        let mut result = RunResult::from_workers(
            metadata,
            instrument,
            origin,
            monitor.total,
            &monitor.host,
            outputs,
        );
        let (stages, counted) = (&result.metadata.stages, &result.snapshot);
        result.series = monitor.series;
        result.tracks = monitor.processes.tracks(origin);
        result.tracks.extend(pages.tracks(origin));
        result.servers = servers.tracks();
        (result.processes, result.resources) =
            monitor.processes.finish(monitor.ended, stages, counted, &pages);
        result.blocks = monitor.blocks.finish();
        result.taken_out = monitor.taken_out;
        monitor.peaks.fill(&mut result.health);
        baseline.fill(&self.clock, &mut result.health);
        result.health.planned_reconnects = Some(self.plan().http.requests_per_connection.is_some());
        result.stopped = monitor.stopped;
        if let Some(spending) = &self.prepared.spending {
            let spent = Some(spending.sentence());
            let to = if spending.is_spent() { &mut result.stopped } else { &mut result.spent };
            *to = to.take().or(spent);
        }
        result.close_sink(sink);
        Ok(result)
    }
}

/// Time between the moment at which every worker is ready and the run's start.
const LEAD: Nanos = Nanos::from_millis(20);

/// The worker threads of a run.
#[derive(Debug)]
pub(crate) struct WorkerThreads {
    context: RunContext,
    pub(crate) threads: Vec<JoinHandle<Result<WorkerOutput, EngineError>>>,
    /// The counts of the workers, second by second.
    pub(crate) intervals: Receiver<Interval>,
}

impl WorkerThreads {
    /// Starts the threads. They wait for [`begin`](Self::begin).
    pub(crate) fn spawn(
        run: &Arc<PreparedRun>,
        clock: MonotonicClock,
        control: &Control,
        sink: Option<&Sink>,
    ) -> Result<Self, EngineError> {
        let count = worker_count(&run.plan);
        let context = RunContext {
            run: Arc::clone(run),
            clock,
            control: control.clone(),
            origin: Arc::default(),
            ready: Arc::new(Barrier::new(usize::from(count) + 1)),
        };
        let (sender, intervals) = channel();
        let mut workers = Self { context, threads: Vec::new(), intervals };
        let cpus =
            run.plan.instrument.pin_workers.then(|| worker_thread::choose_cpus(count)).flatten();
        for index in 0..count {
            let cpu = cpus.as_ref().and_then(|cpus| cpus.get(usize::from(index)).copied());
            let part = WorkerShare::new(run.plan.shard, index, count, open_slots(&run.plan));
            let assignment = WorkerAssignment { index, part, cpu };
            workers.spawn_one(assignment, sink, sender.clone())?;
        }
        Ok(workers)
    }

    fn spawn_one(
        &mut self,
        assignment: WorkerAssignment,
        sink: Option<&Sink>,
        intervals: Sender<Interval>,
    ) -> Result<(), EngineError> {
        let context = self.context.clone();
        let rows = sink.map(Sink::row_batcher).unwrap_or_default();
        let thread = thread::Builder::new()
            .name(format!("plimsoll-{}", assignment.index))
            .spawn(move || run_worker(&context, assignment, rows, intervals))
            .map_err(EngineError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Fixes the run's start when every worker is ready.
    pub(crate) fn begin(&self) -> Moment {
        self.context.ready.wait();
        self.release(self.context.clock.now() + LEAD)
    }

    /// Asks a gate when the run begins, once every worker is ready. They wait for
    /// [`release`](Self::release); where the run is not to begin they end.
    pub(crate) fn ask(&self, gate: &mut dyn StartGate) -> Result<Moment, EngineError> {
        self.context.ready.wait();
        let start = gate.wait(&self.context.clock, &self.context.control);
        start.ok_or_else(|| {
            // No start is set.
            self.context.ready.wait();
            EngineError::NotBegun
        })
    }

    /// Lets the workers begin at this moment.
    pub(crate) fn release(&self, start: Moment) -> Moment {
        let origin = *self.context.origin.get_or_init(|| start);
        self.context.ready.wait();
        origin
    }

    /// Waits for every worker's result.
    pub(crate) fn join(self) -> Result<Vec<WorkerOutput>, EngineError> {
        self.threads
            .into_iter()
            .map(|thread: JoinHandle<_>| thread.join().map_err(|_| EngineError::WorkerPanicked)?)
            .collect()
    }
}

/// Turns spinning off where workers share a CPU: while one spins for its deadline, another would
/// miss its own.
pub(crate) fn without_contention(mut plan: Plan) -> Plan {
    if worker_count(&plan) > cores() {
        plan.instrument.spin = Nanos::ZERO;
    }
    plan
}

/// Requests of the open model that can be sent at once: a worker without a connection gets no
/// arrivals, as one without a slot.
fn open_slots(plan: &Plan) -> u64 {
    plan.limits.max_in_flight.min(plan.http.max_connections.unwrap_or(u64::MAX))
}

// Gates that decide when a run begins.

/// Says when a run begins, once all of its workers are ready: shards of one run begin together.
pub trait StartGate: fmt::Debug + Send {
    /// Waits until shortly before the start, and gives it; `None` where the run is not to begin.
    fn wait(&mut self, clock: &MonotonicClock, control: &Control) -> Option<Moment>;
}
