//! The thread of one worker, from start to end.

// CPU affinity: each worker is bound to one CPU.
use std::cell::Cell;

/// The calling thread, for the scheduler's calls.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// CPUs for `workers` threads, one each, out of those that this process may use; `None` where that
/// is useless or impossible: a single CPU, or fewer CPUs than workers.
pub(crate) fn choose_cpus(workers: u16) -> Option<Vec<usize>> {
    let set = sched_getaffinity(THIS_THREAD).ok()?;
    let allowed = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false));
    choose(&allowed.collect::<Vec<_>>(), workers)
}

/// The last of the allowed ones: interrupts and other processes are usually on the first.
fn choose(allowed: &[usize], workers: u16) -> Option<Vec<usize>> {
    let spare = allowed.len().checked_sub(usize::from(workers))?;
    (allowed.len() > 1).then(|| allowed[spare..].to_vec())
}

/// Binds the calling thread to one CPU; false if the kernel refuses.
pub(crate) fn pin_current_thread(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu).is_ok() && sched_setaffinity(THIS_THREAD, &set).is_ok()
}

// The periodic task of a worker: checks whether the run is interrupted, and sends counts and
// rows away.

/// Time between checks for an interrupt; rows are sent as often.
const TICK: Nanos = Nanos::from_millis(50);
/// Ticks of an interval: one second.
const TICKS_PER_INTERVAL: u32 = 20;

/// The counts of one worker in one interval.
#[derive(Debug)]
pub(crate) struct Interval {
    pub(crate) worker: ThreadId,
    pub(crate) at: Moment,
    pub(crate) snapshot: Snapshot,
    pub(crate) in_flight: u64,
    /// By target: before this time, after the run's start, no request in flight was intended.
    pub(crate) oldest: Vec<Option<Nanos>>,
    /// By target: the last read of a response.
    pub(crate) heard: Vec<Moment>,
    /// Blocks of a comparison that ended.
    pub(crate) blocks: Vec<Block>,
}

/// Ticks until the worker's tasks are dropped.
pub(crate) async fn run_ticker(worker: Rc<Worker>, control: Control, intervals: Sender<Interval>) {
    let mut next = worker.origin;
    let mut ticks = 0;
    loop {
        next = next + TICK;
        worker.timer.sleep_until(next).await;
        let at = worker.clock.now();
        if control.stop().is_some() || worker.run.is_spent() {
            worker.end_early(at);
        }
        worker.end_taken_out(at);
        worker.count_finished();
        worker.send_rows();
        ticks += 1;
        if ticks % TICKS_PER_INTERVAL == 0 {
            let snapshot = worker.stats().take_snapshot(at);
            let in_flight = worker.stats().in_flight();
            let oldest = worker.stats().oldest_open();
            // The receiver is gone when the run is being torn down.
            let blocks = worker.take_blocks(false);
            let heard = worker.heard.iter().map(Cell::get).collect();
            let worker = thread::current().id();
            let interval = Interval { worker, at, snapshot, in_flight, oldest, heard, blocks };
            if intervals.send(interval).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, ThreadId};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use plimsoll_measure::{Block, Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::{Conversations, Snapshot, TaskTally};
use plimsoll_transport::{LookTimes, ReadCounts};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::spawn_local;

use crate::clock::WorkerClock;
use crate::connections::{OpenedAhead, WorkerConnections};
use crate::control::{Control, Stop};
use crate::error::EngineError;
use crate::health::{CpuTime, kernel};
use crate::loop_watch::Pauses;
use crate::pacer::{account_for_rest, run_pacer};
use crate::prepared::PreparedRun;
use crate::sink::RowBatcher;
use crate::timer::Timer;
use crate::virtual_user::run_virtual_user;
use crate::worker::Worker;
use crate::worker_share::WorkerShare;
use crate::worker_stats::{Causes, LoadEnd, StageInFlight};

/// Longest time that responses are awaited after an interrupt.
const INTERRUPTED_DRAIN: Nanos = Nanos::from_secs(2);
/// Time between checks whether all responses are in.
const DRAIN_POLL: Nanos = Nanos::from_millis(2);
/// Time between checks whether the end has moved, while there is load.
const END_POLL: Nanos = Nanos::from_millis(50);

/// Task polls before a worker looks at its sockets and timers again, even if tasks are ready. With
/// tokio's default of 61, a batch of requests is cut in the middle (docs/experiments.md).
const POLLS_PER_EVENT_CHECK: u32 = 128;

/// The context that all workers of a run share.
#[derive(Clone, Debug)]
pub(crate) struct RunContext {
    pub(crate) run: Arc<PreparedRun>,
    pub(crate) clock: MonotonicClock,
    pub(crate) control: Control,
    /// The run's start, set when every worker is ready; not set if the run is not to begin.
    pub(crate) origin: Arc<OnceLock<Moment>>,
    pub(crate) ready: Arc<Barrier>,
}

/// The part of one worker in the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerAssignment {
    /// Its number.
    pub(crate) index: u16,
    /// Its part of the load.
    pub(crate) part: WorkerShare,
    /// The CPU that it is bound to.
    pub(crate) cpu: Option<usize>,
}

/// The result of one worker.
#[derive(Debug)]
pub(crate) struct WorkerOutput {
    /// Counts since the last interval.
    pub(crate) snapshot: Snapshot,
    /// When that ended.
    pub(crate) counted_from: Moment,
    /// Blocks since the last interval, and those that lack a turn.
    pub(crate) blocks: Vec<Block>,
    pub(crate) causes: Causes,
    /// Requests that were kept whole.
    pub(crate) in_flight: Vec<StageInFlight>,
    pub(crate) pauses: Pauses,
    pub(crate) reads: ReadCounts,
    pub(crate) conversations: Conversations,
    /// Tasks of agents.
    pub(crate) tasks: TaskTally,
    /// `Server` headers by target.
    pub(crate) servers: Vec<Option<String>>,
    /// Connections by address, for each target whose name has several.
    pub(crate) addresses: Vec<Vec<(SocketAddr, u64)>>,
    /// Connections by the parameters negotiated in their TLS handshakes, for each target.
    pub(crate) negotiated: Vec<BTreeMap<String, u64>>,
    /// The first of the requests whose number ended the load, if it did.
    pub(crate) begin: Option<Moment>,
    /// The end of the load: no turn was started here or later.
    pub(crate) end: Moment,
    /// Connections that were opened before the run.
    pub(crate) opened_ahead: OpenedAhead,
    /// The CPU that the worker was bound to.
    pub(crate) cpu: Option<usize>,
    /// CPU time over wall time.
    pub(crate) cpu_share: f64,
    /// Time ready to run without a CPU over wall time.
    pub(crate) wait_share: f64,
}

/// Runs one worker: the body of its thread.
pub(crate) fn run_worker(
    context: &RunContext,
    assignment: WorkerAssignment,
    rows: RowBatcher,
    intervals: Sender<Interval>,
) -> Result<WorkerOutput, EngineError> {
    // Before anything is allocated: memory then lies near its CPU.
    let cpu = assignment.cpu.filter(|&cpu| pin_current_thread(cpu));
    // Whatever fails here must fail after the barrier, or the other workers would wait for ever.
    let prepared = prepare(context, assignment.part);
    context.ready.wait();
    context.ready.wait();
    let origin = *context.origin.get().ok_or(EngineError::NotBegun)?;
    let (prepared, began, used) = (prepared?, context.clock.now(), CpuTime::of_thread());
    let PreparedWorker { runtime, timer, connections, opened_ahead } = prepared;
    let run = Arc::clone(&context.run);
    let worker = Rc::new(Worker::new(run, timer, origin, connections, rows));
    let load = run_load(&worker, assignment.part, &context.control, intervals);
    let end = runtime.block_on(load);
    // Turns that are still open are recorded as they are dropped.
    drop(runtime);
    let output = collect(&worker, end);
    let (wall, cpu_time) = (context.clock.now().since(began), CpuTime::of_thread());
    Ok(WorkerOutput {
        cpu,
        opened_ahead,
        cpu_share: cpu_time.busy_since(&used).as_secs_f64() / wall.as_secs_f64(),
        wait_share: cpu_time.waited_since(&used).as_secs_f64() / wall.as_secs_f64(),
        ..output
    })
}

/// An event loop that notes when it looks at its sockets. tokio calls these hooks around each look
/// for which the worker goes to sleep.
fn event_loop(clock: MonotonicClock, looks: &Arc<LookTimes>) -> io::Result<LocalRuntime> {
    let (before, after) = (Arc::clone(looks), Arc::clone(looks));
    Builder::new_current_thread()
        .enable_all()
        .event_interval(POLLS_PER_EVENT_CHECK)
        .on_thread_park(move || {
            if before.needs_sleeps() {
                before.sleeps(clock.now(), kernel::waited());
            }
        })
        .on_thread_unpark(move || {
            after.wakes(clock.now());
            if let Some(waited) = after.needs_sleeps().then(kernel::waited).flatten() {
                after.waited(waited);
            }
        })
        .build_local(LocalOptions::default())
}

/// State of a worker before the run begins.
struct PreparedWorker {
    runtime: LocalRuntime,
    timer: Timer,
    connections: WorkerConnections,
    opened_ahead: OpenedAhead,
}

fn prepare(context: &RunContext, part: WorkerShare) -> Result<PreparedWorker, EngineError> {
    let looks = Arc::default();
    let runtime = event_loop(context.clock, &looks).map_err(EngineError::Worker)?;
    let spin = context.run.plan.instrument.spin;
    let (timer, connections) = {
        let _guard = runtime.enter();
        let clock = WorkerClock::new(context.clock);
        let connections = WorkerConnections::new(&context.run, part, &clock, &looks)?;
        (Timer::new(clock, spin).map_err(EngineError::Worker)?, connections)
    };
    let opened_ahead = runtime.block_on(connections.open_ahead(&context.run));
    Ok(PreparedWorker { runtime, timer, connections, opened_ahead })
}

/// Starts every task of the worker, and waits until the run is over. Gives the moment at which it
/// was.
pub(crate) async fn run_load(
    worker: &Rc<Worker>,
    part: WorkerShare,
    control: &Control,
    intervals: Sender<Interval>,
) -> Moment {
    let driver = Rc::clone(worker);
    spawn_local(async move { driver.timer.drive().await });
    let sender = Rc::clone(worker);
    spawn_local(async move { sender.send_queue.drive(&sender.clock).await });
    spawn_local(run_idle_poll(Rc::clone(worker)));
    spawn_local(run_ticker(Rc::clone(worker), control.clone(), intervals));
    for number in 0..worker.run.schedule.max_virtual_users() {
        if part.users.owns(u64::from(number)) {
            let windows = worker.run.schedule.windows(number);
            spawn_local(run_virtual_user(Rc::clone(worker), number, windows));
        }
    }
    for source in 0..worker.sources.len() {
        spawn_local(run_pacer(Rc::clone(worker), source));
    }
    wait_for_end(worker, control).await;
    let end = worker.clock.now();
    worker.flush_rows();
    end
}

/// Returns when all stages are over and every response is in, or the drain time has passed.
async fn wait_for_end(worker: &Worker, control: &Control) {
    loop {
        let (now, end) = (worker.clock.now(), worker.end.get());
        if now < end {
            worker.timer.sleep_until(end.min(now + END_POLL)).await;
            continue;
        }
        let drain = worker.run.plan.limits.drain;
        let is_cut = control.stop().is_some_and(|stop| stop != Stop::Decided);
        let drain = if is_cut { drain.min(INTERRUPTED_DRAIN) } else { drain };
        if worker.is_quiet() || now >= end + drain {
            return;
        }
        worker.timer.sleep_until(now + DRAIN_POLL).await;
    }
}

/// Accounts for the requests that were never sent, and collects the worker's counts. All of its
/// tasks are gone; the load was over at `load_end`.
pub(crate) fn collect(worker: &Rc<Worker>, load_end: Moment) -> WorkerOutput {
    account_for_rest(worker, worker.end.get());
    worker.count_finished();
    worker.flush_rows();
    let blocks = worker.take_blocks(true);
    let mut stats = worker.stats();
    let counted_from = stats.counted_from();
    let begin = worker.run.begin_of_requests();
    stats.count_warmup(begin.is_some());
    let snapshot = stats.take_snapshot(load_end);
    let LoadEnd { at: end, in_flight } = stats.take_end(worker.end.get(), load_end);
    WorkerOutput {
        blocks,
        counted_from,
        snapshot,
        causes: stats.take_causes(),
        in_flight,
        pauses: worker.watch.take_pauses(),
        reads: worker.rx_clock.reads(),
        conversations: stats.conversations(),
        tasks: stats.take_tasks(),
        servers: stats.take_servers(),
        addresses: worker.addresses(),
        negotiated: worker.negotiated(),
        begin,
        end,
        opened_ahead: OpenedAhead::default(),
        cpu: None,
        cpu_share: 0.0,
        wait_share: 0.0,
    }
}

/// Beats without a request in flight before the beat is stopped: nothing can come that a late read
/// would hide.
///
/// A worker polls its sockets at this interval, even when it is idle.
const IDLE_BEATS: u32 = 25;
/// Makes the worker look at its sockets at least once a beat while requests are in flight, until
/// its tasks are dropped.
///
/// # Errors
/// Where the kernel refuses the timer.
pub(crate) async fn run_idle_poll(worker: Rc<Worker>) -> io::Result<()> {
    let Worker { timer, watch, clock, .. } = &*worker;
    loop {
        timer.set_beating(true)?;
        let mut idle = 0;
        while idle < IDLE_BEATS {
            timer.beat().await?;
            let in_flight = worker.stats().in_flight();
            watch.beat(clock.now(), in_flight, &worker.run.disturbances);
            worker.count_finished();
            idle = if worker.stats().in_flight() == 0 { idle + 1 } else { 0 };
        }
        timer.set_beating(false)?;
        watch.stop();
        poll_fn(|context| watch.poll_started(context)).await;
    }
}

#[cfg(test)]
mod affinity_tests {
    use super::*;

    #[test]
    fn each_worker_gets_its_own_allowed_cpu_or_none_is_bound() {
        for (allowed, workers, choose_cpus) in [
            (&[0, 1, 2, 3][..], 2, Some(vec![2, 3])),
            (&[2, 5], 2, Some(vec![2, 5])),
            (&[2, 5], 3, None),
            (&[0], 1, None),
            (&[], 1, None),
        ] {
            assert_eq!(choose(allowed, workers), choose_cpus, "{allowed:?} {workers}");
        }
    }

    #[test]
    fn a_bound_thread_may_use_its_cpu_alone() {
        let before = sched_getaffinity(THIS_THREAD).unwrap();
        let first = (0..CpuSet::count()).find(|&cpu| before.is_set(cpu).unwrap()).unwrap();
        let after = thread::spawn(move || {
            assert!(pin_current_thread(first));
            sched_getaffinity(THIS_THREAD).unwrap()
        });
        let after = after.join().unwrap();
        let set = (0..CpuSet::count()).filter(|&cpu| after.is_set(cpu).unwrap());
        assert_eq!(set.collect::<Vec<_>>(), [first]);
        assert_eq!(sched_getaffinity(THIS_THREAD).unwrap(), before, "other threads are left alone");
    }
}
