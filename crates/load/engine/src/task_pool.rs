//! Tasks that are used for one job after another.
//!
//! The state of a job, such as a conversation, may be some kilobytes. A new task for each job would
//! copy it to the heap every time, which took a seventh of the processor at 50,000 arrivals per
//! second.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::task::spawn_local;

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
mod tests {
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
