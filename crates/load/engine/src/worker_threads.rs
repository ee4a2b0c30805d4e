//! The worker threads of a run: how many, which part of the load each has, and their common start.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_plan::Plan;

use crate::affinity;
use crate::control::Control;
use crate::error::EngineError;
use crate::prepared::PreparedRun;
use crate::sink::Sink;
use crate::start_gate::StartGate;
use crate::ticker::Interval;
use crate::worker_count::{cores, worker_count};
use crate::worker_share::WorkerShare;
use crate::worker_thread::{RunContext, WorkerAssignment, WorkerOutput, run_worker};

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
        let cpus = run.plan.instrument.pin_workers.then(|| affinity::choose_cpus(count)).flatten();
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

    /// Lets a gate say when the run begins, once every worker is ready. They wait for
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
