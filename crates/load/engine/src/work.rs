//! The thread of one worker, from start to end.

use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, Stripe};
use plimsoll_metrics::{Conversations, Distribution, Snapshot};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::spawn_local;

use crate::control::Control;
use crate::error::EngineError;
use crate::health::CpuTime;
use crate::pacer::{account_for_rest, pace};
use crate::pin;
use crate::prepare::Prepared;
use crate::presence::StagePresence;
use crate::sink::Outbox;
use crate::ticker::{Interval, tick};
use crate::virtual_user::live;
use crate::worker::{Causes, Worker};

/// Longest time that answers are awaited after an interrupt.
const INTERRUPTED_DRAIN: Nanos = Nanos::from_secs(2);
/// How often the end is looked for.
const LOOK: Nanos = Nanos::from_millis(2);
const LOOK_WHILE_LOADING: Nanos = Nanos::from_millis(50);

/// What all workers of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) run: Arc<Prepared>,
    pub(crate) clock: MonotonicClock,
    pub(crate) control: Control,
    /// Set when every worker is ready.
    pub(crate) origin: Arc<OnceLock<Moment>>,
    pub(crate) ready: Arc<Barrier>,
}

/// What one worker is there for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    /// Its number.
    pub(crate) index: u16,
    /// Its part of the load.
    pub(crate) stripe: Stripe,
    /// The CPU that it is bound to.
    pub(crate) cpu: Option<usize>,
}

/// What one worker brings home.
#[derive(Debug)]
pub(crate) struct Done {
    /// What was counted after the last interval.
    pub(crate) snapshot: Snapshot,
    pub(crate) causes: Causes,
    pub(crate) presence: Vec<StagePresence>,
    pub(crate) pacing_lag: Distribution,
    /// Arrivals planned, and released in time.
    pub(crate) arrivals: (u64, u64),
    pub(crate) conversations: Conversations,
    pub(crate) servers: Vec<Option<String>>,
    /// The CPU that the worker was bound to.
    pub(crate) cpu: Option<usize>,
    /// CPU time over wall time.
    pub(crate) cpu_share: f64,
    /// Time ready to run without a CPU over wall time.
    pub(crate) wait_share: f64,
    /// No turn was started here or later.
    pub(crate) until: Moment,
}

/// Carries out one worker's part of the run.
pub(crate) fn work(
    shared: &Shared,
    post: Post,
    outbox: Outbox,
    intervals: Sender<Interval>,
) -> Result<Done, EngineError> {
    // Before anything is allocated: memory then lies near its CPU.
    let cpu = post.cpu.filter(|&cpu| pin::bind(cpu));
    // Whatever fails here must fail after the barrier, or the other workers would wait for ever.
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(EngineError::Worker);
    shared.ready.wait();
    shared.ready.wait();
    let origin = shared.origin.get().copied().unwrap_or_else(|| shared.clock.now());
    let load = Load { shared, stripe: post.stripe, origin };
    load.carry_out(runtime?, outbox, intervals).map(|done| Done { cpu, ..done })
}

/// One worker's part of the load.
struct Load<'a> {
    shared: &'a Shared,
    stripe: Stripe,
    origin: Moment,
}

impl Load<'_> {
    fn carry_out(
        &self,
        runtime: LocalRuntime,
        outbox: Outbox,
        intervals: Sender<Interval>,
    ) -> Result<Done, EngineError> {
        let Shared { run, clock, .. } = self.shared;
        let (began, cpu) = (clock.now(), CpuTime::of_thread());
        let worker = {
            let _context = runtime.enter();
            Rc::new(Worker::new(Arc::clone(run), self.stripe, *clock, self.origin, outbox)?)
        };
        runtime.block_on(self.load(&worker, intervals));
        let end = clock.now();
        // The load is over. What follows may wait for the writer.
        worker.post_samples(true);
        // Turns that are still open are recorded as they are dropped.
        drop(runtime);
        account_for_rest(&worker, worker.until.get());
        worker.post_samples(true);
        let (wall, used) = (clock.now().since(began).as_secs_f64(), CpuTime::of_thread());
        Ok(Done {
            snapshot: worker.take_snapshot(),
            causes: worker.take_causes(),
            presence: worker.take_presence(end),
            pacing_lag: worker.take_pacing_lag(),
            arrivals: worker.arrivals(),
            conversations: worker.conversations(),
            servers: worker.servers(),
            cpu: None,
            cpu_share: used.busy_since(&cpu).as_secs_f64() / wall,
            wait_share: used.waited_since(&cpu).as_secs_f64() / wall,
            until: worker.until.get(),
        })
    }

    /// Starts every task of the worker, and waits until the run is over.
    async fn load(&self, worker: &Rc<Worker>, intervals: Sender<Interval>) {
        let driver = Rc::clone(worker);
        spawn_local(async move { driver.timer.drive().await });
        spawn_local(tick(Rc::clone(worker), self.shared.control.clone(), intervals));
        for number in 0..worker.run.schedule.max_virtual_users() {
            if self.stripe.owns(u64::from(number)) {
                spawn_local(live(Rc::clone(worker), number, worker.run.schedule.windows(number)));
            }
        }
        spawn_local(pace(Rc::clone(worker)));
        wait_for_end(worker, &self.shared.control).await;
    }
}

/// Returns when all stages are over and every answer is in, or waiting for answers has taken long enough.
async fn wait_for_end(worker: &Worker, control: &Control) {
    loop {
        let (now, until) = (worker.clock.now(), worker.until.get());
        if now < until {
            worker.timer.sleep_until(until.min(now + LOOK_WHILE_LOADING)).await;
            continue;
        }
        let drain = worker.run.plan.limits.drain;
        let drain = if control.is_interrupted() { drain.min(INTERRUPTED_DRAIN) } else { drain };
        if worker.is_quiet() || now >= until + drain {
            return;
        }
        worker.timer.sleep_until(now + LOOK).await;
    }
}
