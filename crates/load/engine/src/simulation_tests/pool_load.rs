//! Pools of connections under a load, in virtual time: several workers, each with its pool, and one
//! target. No requests, so that thousands of arrivals take little time.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_measure::{Clock as _, Moment, Nanos, Rng, Seed};
use plimsoll_transport::{Adds, Demand, PoolLimits};
use tokio::task::{LocalSet, spawn_local};

use super::target::ScriptedOpener;
use super::{ScriptedTarget, Simulation, run_simulated, sleep_until};
use crate::clock::WorkerClock;
use crate::connections::Pool;

/// A request: when it is to start, and how long the target works on it.
pub(crate) type Arrival = (Moment, Nanos);

/// Load of the pools.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolLoad {
    /// Workers, each with its own pool; arrivals go to them in turn.
    pub(crate) workers: usize,
    pub(crate) arrivals: Vec<Arrival>,
    /// Most connections of all pools.
    pub(crate) most: Option<usize>,
    /// Connections that each pool opens ahead, and the answer time that it expects.
    pub(crate) ahead: Option<(usize, Nanos)>,
    /// From when to when the generator does not run.
    pub(crate) pauses: Vec<(Moment, Moment)>,
}

/// Result of the load.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolRun {
    /// Connections that were opened.
    pub(crate) connections: usize,
    /// The response times, shortest first.
    response_times: Vec<Nanos>,
    /// The same without the pools' own possible overhead.
    without_own_waits: Vec<Nanos>,
    /// The longest wait for a connection.
    pub(crate) longest_wait: Nanos,
}

impl PoolRun {
    /// A percentile of the response times, in microseconds.
    pub(crate) fn response_us(&self, percentile: usize) -> u64 {
        percentile_us(&self.response_times, percentile)
    }

    /// The same, without the pools' own possible overhead.
    pub(crate) fn least_response_us(&self, percentile: usize) -> u64 {
        percentile_us(&self.without_own_waits, percentile)
    }
}

fn percentile_us(sorted: &[Nanos], percentile: usize) -> u64 {
    sorted[sorted.len() * percentile / 100].as_u64() / 1_000
}

/// Moments of Poisson arrivals, as far as `rate` (a function of the time in seconds) admits them
/// from `most` a second, and the time that the target takes for each.
pub(crate) fn poisson(
    seed: u64,
    most: f64,
    seconds: f64,
    rate: impl Fn(f64) -> f64,
    mut time: impl FnMut(&mut Rng) -> Nanos,
) -> Vec<Arrival> {
    let mut rng = Seed(seed).rng("arrivals", 0);
    let mut at = 0.0;
    let mut arrivals = Vec::new();
    loop {
        at -= (1.0 - rng.uniform()).ln() / most;
        if at >= seconds {
            return arrivals;
        }
        if rng.uniform() * most < rate(at) {
            arrivals.push((Moment::EPOCH + Nanos::from_secs_f64(at), time(&mut rng)));
        }
    }
}

/// Runs the load against a target.
pub(crate) fn run(load: &PoolLoad, target: ScriptedTarget) -> PoolRun {
    let simulation = Simulation::new(target);
    for (from, to) in &load.pauses {
        simulation.pause(*from, *to);
    }
    let clock = WorkerClock::simulated(Rc::clone(&simulation));
    let pools: Vec<_> =
        (0..load.workers).map(|worker| Rc::new(pool(load, worker, &clock))).collect();
    let done = Rc::new(RefCell::new(PoolRun::default()));
    run_simulated(&simulation, &LocalSet::new(), async {
        if let Some((count, answer)) = load.ahead {
            for pool in &pools {
                pool.expect_answer(answer);
                pool.open_ahead(count).await;
            }
        }
        let origin = clock.now().since(Moment::EPOCH);
        let mut requests = Vec::new();
        for (index, (at, time)) in load.arrivals.iter().enumerate() {
            let intended = *at + origin;
            sleep_until(&clock, intended).await;
            let (pool, clock) = (Rc::clone(&pools[index % pools.len()]), clock.clone());
            let done = Rc::clone(&done);
            let time = *time;
            requests.push(spawn_local(async move {
                let wait = request(&pool, &clock, intended, time).await;
                let response = clock.now().since(intended);
                let mut done = done.borrow_mut();
                done.response_times.push(response);
                done.without_own_waits.push(response.saturating_sub(wait.own));
                done.longest_wait = done.longest_wait.max(wait.whole);
            }));
        }
        for request in requests {
            request.await.unwrap();
        }
    });
    let mut done = done.take();
    done.response_times.sort_unstable();
    done.without_own_waits.sort_unstable();
    done.connections = pools.iter().map(|pool| pool.opened() as usize).sum();
    done
}

fn pool(load: &PoolLoad, worker: usize, clock: &WorkerClock) -> Pool {
    let limits = PoolLimits::default();
    let max_connections = load.most.map_or(limits.max_connections, |all: usize| {
        (all + load.workers - 1 - worker) / load.workers
    });
    Pool::new(ScriptedOpener::of_clock(clock), PoolLimits { max_connections, ..limits })
}

/// A wait for a connection, and how much of it the pool may have made itself.
struct Wait {
    whole: Nanos,
    own: Nanos,
}

/// One request; gives its wait for a connection.
async fn request(pool: &Pool, clock: &WorkerClock, intended: Moment, time: Nanos) -> Wait {
    let now = clock.now();
    let adds = Adds::for_arrival(now.since(intended));
    let acquired = pool.checkout(Demand { adds, ..Demand::at(now) }).await;
    let mut lease = acquired.connection.unwrap();
    lease.carry(time).await;
    lease.release(clock.now());
    Wait { whole: acquired.phases.wait.unwrap_or_default(), own: acquired.own_wait }
}
