//! A connection pool: requests wait for a connection in order, and take a freed connection or a
//! finished handshake, whichever comes first. ADR 0009 has the reasons.

mod answer_time;
mod demand;
mod growth;
mod idle_race;
mod inner;
mod lease;
mod opener;
mod pooled;
mod probe;
mod savings;
mod wait_queue;

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;

use plimsoll_measure::{ConnectPhases, Moment, Nanos};
use tokio::task::spawn_local;

use self::inner::Inner;
use self::pooled::Pooled;
use self::wait_queue::{Delivery, Waiter};
use crate::failure::Failure;

pub use self::demand::{Adds, Demand, PoolLimits};
pub use self::lease::Lease;
pub use self::opener::{Opener, Poolable, TargetOpener};

/// Maximum number of parallel handshakes when connections are opened ahead of the load.
const AHEAD_AT_ONCE: usize = 8;

/// The end of a wait for a connection.
#[derive(Debug)]
pub struct Acquired<'p, O: Opener> {
    /// Duration of the wait for a connection, and of the set-up of the one that ended it.
    pub phases: ConnectPhases,
    /// Time at which the connection was available, or began to be opened for the request: later
    /// than the demand by `phases.wait`.
    pub dispatched: Moment,
    /// Part of the wait that the pool may have caused, because it limits how fast it opens
    /// connections.
    pub own_wait: Nanos,
    /// Time at which the connection was ready.
    pub connected: Moment,
    /// The connection.
    pub connection: Result<Lease<'p, O>, Failure>,
}

/// Connections to one target, most recently used first. The least used ones stay idle, and the
/// target can close them without harm. HTTP/2: stream slots on shared connections.
///
/// Requires a [`tokio::task::LocalSet`] or local runtime, because handshakes are separate tasks.
#[derive(Debug)]
pub struct Pool<O: Opener>(Rc<Inner<O>>);

impl<O: Opener> Pool<O> {
    /// Creates an empty pool.
    pub fn new(opener: O, limits: PoolLimits) -> Self {
        Self(Rc::new(Inner::new(opener, limits)))
    }

    /// Returns a connection for a request: an idle one, or else a freed or new one, whichever comes
    /// first.
    ///
    /// # Cancel safety
    /// A dropped future leaves the queue. A started handshake continues, and its connection joins
    /// the pool.
    pub async fn checkout(&self, demand: Demand) -> Acquired<'_, O> {
        if !demand.unused
            && let Some(connection) = self.0.take_idle(demand.now)
        {
            let ahead = !connection.connection.was_used();
            return Acquired {
                phases: ConnectPhases { ahead, ..ConnectPhases::default() },
                dispatched: demand.now,
                own_wait: Nanos::ZERO,
                connected: demand.now,
                connection: Ok(self.lease(connection)),
            };
        }
        self.wait(demand).await
    }

    async fn wait(&self, demand: Demand) -> Acquired<'_, O> {
        let waiting = Waiting { pool: &self.0, waiter: self.0.waiting.push(demand) };
        let wanted = self.0.demand_of(demand);
        self.0.grow(demand.now, wanted, demand.adds);
        let Delivery { mut phases, started, connection } =
            poll_fn(|context| waiting.waiter.poll(context)).await;
        let connected = self.0.opener.now();
        // A handshake that began before the demand did not delay it.
        let dispatched = started.unwrap_or(connected).max(demand.now);
        phases.wait = Some(dispatched.since(demand.now)).filter(|wait| *wait > Nanos::ZERO);
        let own_wait = self.0.own_part(demand.now, dispatched);
        let connection = connection.map(|mut connection| {
            connection.taken = connected;
            self.lease(connection)
        });
        Acquired { phases, dispatched, own_wait, connected, connection }
    }

    /// Opens connections ahead of the load, up to a total of `count`. Returns the number of
    /// successes and of failures.
    pub async fn open_ahead(&self, count: usize) -> (usize, usize) {
        let count = count.min(self.0.limits.max_connections);
        let (next, failed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let tasks: Vec<_> = (0..AHEAD_AT_ONCE.min(count))
            .map(|_| {
                let (pool, next, failed) =
                    (Rc::clone(&self.0), Rc::clone(&next), Rc::clone(&failed));
                spawn_local(async move { pool.open_ahead(&next, &failed, count).await })
            })
            .collect();
        for task in tasks {
            // A panic in the task shows as a missing connection.
            let _ = task.await;
        }
        (next.get() - failed.get(), failed.get())
    }

    /// Sets the expected response time, which applies until the pool has seen a response.
    pub fn expect_answer(&self, answer: Nanos) {
        self.0.growth.expect_answer(answer);
    }

    /// Whether the target has closed a connection that waits for its next request. Always false in
    /// HTTP/2.
    pub fn has_lost_idle(&self) -> bool {
        self.0.idle.borrow_mut().iter_mut().any(|pooled| !pooled.connection.is_idle())
    }

    /// Number of opened connections.
    pub fn opened(&self) -> u32 {
        self.0.opened.get()
    }

    fn lease(&self, connection: Pooled<O::Connection>) -> Lease<'_, O> {
        Lease::new(&self.0, connection)
    }
}

/// A waiting demand, which leaves the queue when dropped.
struct Waiting<'p, O: Opener> {
    pool: &'p Rc<Inner<O>>,
    waiter: Rc<Waiter<O::Connection>>,
}

impl<O: Opener> Drop for Waiting<'_, O> {
    fn drop(&mut self) {
        match self.waiter.take_delivery() {
            Some(Delivery { connection: Ok(pooled), .. }) => self.pool.offer(pooled),
            Some(_) => {}
            None => self.pool.waiting.remove(&self.waiter),
        }
    }
}
