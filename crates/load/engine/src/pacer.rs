//! The open model: arrivals start when the schedule says, whatever the target does.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use plimsoll_measure::{ConversationKey, Moment, Nanos};
use plimsoll_plan::Overflow;
use plimsoll_schedule::Arrival;
use plimsoll_transport::BEAT;
use tokio::task::spawn_local;

use crate::arrival_source::ArrivalSource;
use crate::conversation::{ConversationStart, run_session};
use crate::in_flight_limit::InFlightPermit;
use crate::request_timeout::LazyTimeout;
use crate::turn::OpenTurn;
use crate::worker::{NextPrompt, Worker};

/// Arrivals that are dispatched before the worker looks at its sockets again, so that a burst of
/// late arrivals does not delay the reading of responses.
const BURST: u32 = 64;

/// Dispatches this worker's part of the arrivals, of one source, each at its time.
///
/// The schedule is never bent: an arrival that finds no free permit (`overflow: queue`) holds up
/// the ones behind it, and all of them are charged from their intended start. The arrivals left
/// when the run ends stay in the schedule, where [`account_for_rest`] finds it.
pub(crate) async fn run_pacer(worker: Rc<Worker>, source: usize) {
    let source = &worker.sources[source];
    let of_tasks = Rc::clone(&worker);
    let tasks =
        TaskPool::new(move |(arrival, start)| run_arrival(Rc::clone(&of_tasks), arrival, start));
    let mut burst = 0;
    while let Some(at) = worker.next_arrival(source) {
        if worker.is_past(at) {
            burst += 1;
            if burst >= BURST {
                burst = 0;
                tokio::task::yield_now().await;
            }
        } else {
            burst = 0;
            worker.timer.sleep_until(at).await;
        }
        if at >= worker.end.get().min(source.end.get()) {
            return;
        }
        let permit = acquire_permit(source, at).await;
        if permit.is_some() && !worker.take_request(at) {
            return;
        }
        // Only now: an arrival that is still waiting when the run ends belongs to the rest.
        if let Some(arrival) = source.take() {
            match permit {
                Some(permit) => {
                    let end = worker.conversation_end(ConversationKey::arrival(arrival.seq), at);
                    tasks.spawn((arrival, ConversationStart::open(at, end, permit)));
                }
                None => never_send(&worker, &arrival, at, dropped_by_us(&worker, at)),
            }
        }
    }
}

/// A permit for the next arrival, which is due at `at`; none where arrivals beyond the limit are
/// dropped.
async fn acquire_permit(source: &ArrivalSource, at: Moment) -> Option<InFlightPermit> {
    let limit = &source.limit;
    let permit = limit.try_acquire(at);
    if permit.is_some() || limit.overflow() == Overflow::Drop {
        return permit;
    }
    source.waits.set(true);
    let permit = limit.acquire(at).await;
    source.waits.set(false);
    permit
}

/// How late an arrival was dropped, if the generator may have caused the lack of a slot by
/// releasing several arrivals at once after a pause.
fn dropped_by_us(worker: &Worker, at: Moment) -> Nanos {
    let late = worker.clock.latest().since(at);
    if late > BEAT { late } else { Nanos::ZERO }
}

/// Runs the conversation of an arrival.
async fn run_arrival(worker: Rc<Worker>, arrival: Arrival, mut start: ConversationStart) {
    let mut conversation = worker
        .run
        .workload
        .conversation(ConversationKey::arrival(arrival.seq), row(&worker, &arrival));
    let timeouts = &worker.buffers.timeouts;
    let mut timeout = timeouts.acquire_or(|| LazyTimeout::new(&worker.clock));
    let connections = Rc::clone(&worker.connections);
    run_session(&worker, &mut conversation, &connections, &mut timeout, &mut start).await;
    timeouts.release(timeout);
}

/// Accounts for the arrivals that were due before `end` and were never dispatched. Where they wait
/// for a slot, a generator that is never late would have sent only some of them.
pub(crate) fn account_for_rest(worker: &Rc<Worker>, end: Moment) {
    for source in &worker.sources {
        let (end, mut rest) = (end.min(source.end.get()), 0);
        while let Some(at) = worker.next_arrival(source).filter(|&at| at < end) {
            let Some(arrival) = source.take() else { break };
            let owed =
                !source.waits.get() || rest < source.limit.owed(worker.stage_end(arrival.stage));
            rest += 1;
            let late = if owed { end.since(at) } else { Nanos::ZERO };
            never_send(worker, &arrival, at, late);
        }
    }
}

/// Accounts for an arrival that is not sent; `late` by the generator's fault, or zero.
fn never_send(worker: &Rc<Worker>, arrival: &Arrival, at: Moment, late: Nanos) {
    let key = ConversationKey::arrival(arrival.seq);
    let conversation = worker.run.workload.conversation(key, trace_row(worker, arrival));
    let mut turn = OpenTurn::new(worker, at);
    turn.schedule(&conversation);
    turn.never_send(late);
}

/// The row of the trace that an arrival plays, or the prompt of a list that it sends.
fn row(worker: &Worker, arrival: &Arrival) -> Option<u64> {
    match worker.next_prompt(worker.origin + arrival.at) {
        NextPrompt::Listed(row) => Some(row),
        // For a list, the request budget admits at most one arrival per prompt.
        NextPrompt::Any | NextPrompt::None => trace_row(worker, arrival),
    }
}

/// The row of the trace that an arrival plays.
fn trace_row(worker: &Worker, arrival: &Arrival) -> Option<u64> {
    worker.plays_trace(arrival.stage).then_some(arrival.index)
}

// Tasks that are used for one job after another.
//
// The state of a job, such as a conversation, may be some kilobytes. A new task for each job would
// copy it to the heap every time, which took a seventh of the processor at 50,000 arrivals per
// second.

/// Idle tasks that are kept: a burst must not cost memory until the end of the run.
const MAX_IDLE: usize = 256;

/// Runs jobs of type `J` concurrently: on idle tasks, and on new ones where none is idle. `R` makes
/// the future of a job.
#[derive(Debug)]
pub(crate) struct TaskPool<J, R> {
    inner: Rc<Inner<J, R>>,
}

#[derive(Debug)]
struct Inner<J, R> {
    run: R,
    /// The task parked last at the end.
    idle: RefCell<Vec<Rc<ParkedTask<J>>>>,
}

/// Where a parked task finds its next job.
#[derive(Debug)]
struct ParkedTask<J> {
    job: RefCell<Option<J>>,
    waker: RefCell<Option<Waker>>,
}

impl<J: 'static, F: Future<Output = ()> + 'static, R: Fn(J) -> F + 'static> TaskPool<J, R> {
    /// A pool without tasks yet.
    pub(crate) fn new(run: R) -> Self {
        Self { inner: Rc::new(Inner { run, idle: RefCell::default() }) }
    }

    /// Runs a job on an idle task, or on a new one.
    pub(crate) fn spawn(&self, job: J) {
        let parked = self.inner.idle.borrow_mut().pop();
        if let Some(parked) = parked {
            parked.job.replace(Some(job));
            if let Some(waker) = parked.waker.take() {
                waker.wake();
            }
        } else {
            let task =
                Rc::new(ParkedTask { job: RefCell::new(Some(job)), waker: RefCell::default() });
            spawn_local(run_jobs(Rc::clone(&self.inner), task));
        }
    }
}

/// Runs one job after another, until enough other tasks are idle.
async fn run_jobs<J, F: Future<Output = ()>, R: Fn(J) -> F>(
    pool: Rc<Inner<J, R>>,
    task: Rc<ParkedTask<J>>,
) {
    loop {
        let job = task.next_job().await;
        (pool.run)(job).await;
        if !pool.park(&task) {
            return;
        }
    }
}

impl<J, R> Inner<J, R> {
    /// Adds a task to the idle ones; false if there are enough of them.
    fn park(&self, task: &Rc<ParkedTask<J>>) -> bool {
        let mut idle = self.idle.borrow_mut();
        let has_room = idle.len() < MAX_IDLE;
        if has_room {
            idle.push(Rc::clone(task));
        }
        has_room
    }
}

impl<J> ParkedTask<J> {
    async fn next_job(&self) -> J {
        poll_fn(|context| {
            let job = self.job.take();
            if job.is_none() {
                self.waker.replace(Some(context.waker().clone()));
            }
            job.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod task_pool_tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;
    use crate::simulation_tests::run_until_stalled;

    /// Each job, and the task that ran it.
    type Log = Rc<RefCell<Vec<(u32, tokio::task::Id)>>>;

    #[test]
    fn a_task_that_is_done_takes_the_next_job() {
        let log = Log::default();
        let of_jobs = Rc::clone(&log);
        let pool = TaskPool::new(move |job| {
            let log = Rc::clone(&of_jobs);
            async move { log.borrow_mut().push((job, tokio::task::id())) }
        });
        run_until_stalled(async {
            for job in 0..3 {
                pool.spawn(job);
                // The task runs and parks.
                yield_now().await;
                yield_now().await;
            }
        });
        let log = log.borrow();
        assert_eq!(log.iter().map(|(job, _)| *job).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(log.iter().all(|(_, task)| *task == log[0].1), "{log:?}");
    }

    #[test]
    fn jobs_at_the_same_time_get_a_task_each_and_a_bounded_number_of_tasks_is_kept() {
        let running: Rc<Cell<usize>> = Rc::default();
        let of_jobs = Rc::clone(&running);
        let pool = TaskPool::new(move |()| count_while_running(Rc::clone(&of_jobs)));
        let peak = run_until_stalled(async {
            (0..MAX_IDLE + 44).for_each(|_| pool.spawn(()));
            yield_now().await;
            let mut peak = running.get();
            while running.get() > 0 {
                yield_now().await;
                peak = peak.max(running.get());
            }
            peak
        });
        assert_eq!(peak, MAX_IDLE + 44);
        assert_eq!(pool.inner.idle.borrow().len(), MAX_IDLE);
    }

    async fn count_while_running(running: Rc<Cell<usize>>) {
        running.set(running.get() + 1);
        for _ in 0..20 {
            yield_now().await;
        }
        running.set(running.get() - 1);
    }
}
