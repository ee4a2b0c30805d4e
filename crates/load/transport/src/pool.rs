//! A connection pool: who needs a connection waits for one in order, and takes whichever comes
//! first, a freed connection or a finished handshake. ADR 0009 has the reasons.

mod growth;
mod opener;
mod pooled;
mod wait_queue;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use plimsoll_measure::{ConnectPhases, Moment, Nanos};
use tokio::task::spawn_local;

use self::growth::Growth;
use self::pooled::Pooled;
use self::wait_queue::{Delivery, WaitQueue, Waiter};
use crate::failure::Failure;

pub use self::opener::{Opened, Opener, Poolable, TargetOpener};

/// Handshakes at once when connections are opened ahead of the load.
const AHEAD_AT_ONCE: usize = 8;

/// Bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Most connections, those that are being opened included; at least 1.
    pub max_connections: usize,
    /// A connection that has been idle for longer is not used again. HTTP/1.1 only.
    pub idle_limit: Nanos,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { max_connections: usize::MAX, idle_limit: Nanos::new(u64::MAX) }
    }
}

/// A need for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Since when.
    pub now: Moment,
    /// The generator itself released the request late. No connection is added for it while a free
    /// one will come soon: its delay is not the target's.
    pub late: bool,
    /// Only a connection that has carried no request will do.
    pub unused: bool,
}

impl Demand {
    /// Any connection will do.
    pub const fn at(now: Moment) -> Self {
        Self { now, late: false, unused: false }
    }
}

/// The end of a wait for a connection.
#[derive(Debug)]
pub struct Acquired<'p, O: Opener> {
    /// The wait for a connection, and the set-up of the one that ended it.
    pub phases: ConnectPhases,
    /// When the connection was there, or began to be opened for the request: later than the demand
    /// by `phases.wait`.
    pub dispatched: Moment,
    /// When it could be used.
    pub connected: Moment,
    /// The connection.
    pub connection: Result<Lease<'p, O>, Failure>,
}

/// Connections to one target, most recently used first. So the least used ones stay idle, and the
/// target can close them without harm. HTTP/2: stream slots on shared connections.
///
/// It is used within a [`tokio::task::LocalSet`] or local runtime: handshakes are tasks of their
/// own.
#[derive(Debug)]
pub struct Pool<O: Opener>(Rc<Inner<O>>);

#[derive(Debug)]
struct Inner<O: Opener> {
    opener: O,
    limits: PoolLimits,
    idle: RefCell<Vec<Pooled<O::Connection>>>,
    waiting: WaitQueue<O::Connection>,
    growth: Growth,
    /// HTTP/1.1: open connections.
    open: Cell<usize>,
    /// Connections opened so far.
    opened: Cell<u32>,
    /// Whether a task looks at the queue from time to time.
    watched: Cell<bool>,
}

impl<O: Opener> Pool<O> {
    /// An empty pool.
    pub fn new(opener: O, limits: PoolLimits) -> Self {
        Self(Rc::new(Inner {
            opener,
            limits,
            idle: RefCell::default(),
            waiting: WaitQueue::default(),
            growth: Growth::default(),
            open: Cell::new(0),
            opened: Cell::new(0),
            watched: Cell::new(false),
        }))
    }

    /// Returns a connection that can carry a request: an idle one if there is one, else whichever
    /// comes first, a freed one or a new one.
    ///
    /// # Cancel safety
    /// Whoever gives up leaves the queue. A handshake that was started goes on, and its connection
    /// joins the pool.
    pub async fn checkout(&self, demand: Demand) -> Acquired<'_, O> {
        if !demand.unused
            && let Some(connection) = self.0.take_idle(demand.now)
        {
            let ahead = !connection.connection.was_used();
            return Acquired {
                phases: ConnectPhases { ahead, ..ConnectPhases::default() },
                dispatched: demand.now,
                connected: demand.now,
                connection: Ok(self.lease(connection)),
            };
        }
        self.wait(demand).await
    }

    async fn wait(&self, demand: Demand) -> Acquired<'_, O> {
        let waiting = Waiting { pool: &self.0, waiter: self.0.waiting.push(demand) };
        let wanted = self.0.demand_of(demand);
        self.0.grow(demand.now, wanted);
        let Delivery { mut phases, started, connection } =
            poll_fn(|context| waiting.waiter.poll(context)).await;
        let connected = self.0.opener.now();
        // A handshake that began before the demand was no wait for one.
        let dispatched = started.unwrap_or(connected).max(demand.now);
        phases.wait = Some(dispatched.since(demand.now)).filter(|wait| *wait > Nanos::ZERO);
        let connection = connection.map(|mut connection| {
            connection.taken = connected;
            self.lease(connection)
        });
        Acquired { phases, dispatched, connected, connection }
    }

    /// Opens connections ahead of the load, up to so many in all. Gives the number of those that
    /// could be opened, and of those that could not.
    pub async fn open_ahead(&self, count: usize) -> (usize, usize) {
        let count = count.min(self.0.limits.max_connections);
        let (next, failed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let run = || {
            let (pool, next, failed) = (Rc::clone(&self.0), Rc::clone(&next), Rc::clone(&failed));
            spawn_local(async move {
                while next.get() < count && failed.get() == 0 {
                    next.set(next.get() + 1);
                    pool.growth.handshake_began(true);
                    let Opened { connection, .. } = pool.opener.open().await;
                    pool.growth.handshake_ended(true);
                    match connection {
                        Ok(connection) => {
                            let pooled = pool.add(connection);
                            pool.idle.borrow_mut().push(pooled);
                        }
                        Err(_) => failed.set(failed.get() + 1),
                    }
                }
            })
        };
        let tasks: Vec<_> = (0..AHEAD_AT_ONCE.min(count)).map(|_| run()).collect();
        for task in tasks {
            // A panic in it shows when its connection is missing.
            let _ = task.await;
        }
        (next.get() - failed.get(), failed.get())
    }

    /// The time that an answer is expected to take, as long as the pool has seen none.
    pub fn expect_answer(&self, answer: Nanos) {
        self.0.growth.expect_answer(answer);
    }

    /// Connections that were opened.
    pub fn opened(&self) -> u32 {
        self.0.opened.get()
    }

    const fn lease(&self, connection: Pooled<O::Connection>) -> Lease<'_, O> {
        Lease { pool: &self.0, connection: Some(connection) }
    }
}

impl<O: Opener> Inner<O> {
    /// Takes an idle connection or a free slot on a shared one. Closed connections are dropped.
    fn take_idle(self: &Rc<Self>, now: Moment) -> Option<Pooled<O::Connection>> {
        loop {
            // In a loop condition the pool would stay borrowed while the connection is dropped.
            let Some(mut pooled) = self.idle.borrow_mut().pop() else { break };
            let idle_for = now.since(pooled.idle_since);
            if idle_for <= self.limits.idle_limit && pooled.connection.is_idle() {
                pooled.taken = now;
                return Some(pooled);
            }
            self.forget(pooled);
        }
        // Number 0: a slot is not a connection.
        self.opener.free_slot().map(|slot| Pooled::new(slot, 0, now))
    }

    /// Drops a connection.
    fn forget(&self, pooled: Pooled<O::Connection>) {
        let number = pooled.number;
        drop(pooled);
        // The slots of a shared connection come and go without it.
        if number > 0 && self.opener.shared_connections().is_none() {
            self.open.set(self.open.get().saturating_sub(1));
            self.growth.closed(number);
        }
    }

    /// Adds a connection that was opened.
    fn add(&self, connection: O::Connection) -> Pooled<O::Connection> {
        let number = self.opened.get().saturating_add(1);
        self.opened.set(number);
        self.open.set(self.open.get() + 1);
        Pooled::new(connection, number, self.opener.now())
    }

    /// Connections, those that are being opened included.
    fn connections(&self) -> usize {
        let open = self.opener.shared_connections().unwrap_or_else(|| self.open.get());
        open + self.growth.handshakes()
    }

    /// How many connections a demand that has just joined the queue may ask for.
    fn demand_of(&self, demand: Demand) -> usize {
        let busy = self.connections() > self.idle.borrow().len();
        if demand.late && self.growth.is_fast() && busy {
            self.waiting.eager()
        } else {
            self.waiting.len()
        }
    }

    /// Starts handshakes for so many who wait, as far as that is allowed now.
    fn grow(self: &Rc<Self>, now: Moment, wanted: usize) {
        let slots = self.opener.slots();
        while wanted > self.growth.handshakes().saturating_mul(slots) {
            if self.connections() >= self.limits.max_connections && !self.make_room() {
                break;
            }
            let refill = self.growth.take_place();
            if !refill && !self.growth.may_add(now) {
                break;
            }
            self.start_handshake(now, refill);
        }
        if self.waiting.len() > self.growth.handshakes().saturating_mul(slots) {
            self.watch();
        }
    }

    /// Closes an idle connection that those who wait cannot use.
    fn make_room(&self) -> bool {
        let idle = self.idle.borrow_mut().pop();
        idle.map(|pooled| self.forget(pooled)).is_some()
    }

    fn start_handshake(self: &Rc<Self>, now: Moment, refill: bool) {
        self.growth.handshake_began(refill);
        let pool = Rc::clone(self);
        spawn_local(async move {
            let opened = pool.opener.open().await;
            pool.growth.handshake_ended(refill);
            pool.handshake_ended(opened, now, refill);
        });
    }

    fn handshake_ended(
        self: &Rc<Self>,
        opened: Opened<O::Connection>,
        started: Moment,
        refill: bool,
    ) {
        let Opened { phases, connection } = opened;
        let now = self.opener.now();
        match connection {
            Ok(connection) => {
                let pooled = self.add(connection);
                self.growth.opened(pooled.number, started, now);
                match self.waiting.pop(false) {
                    Some(waiter) => {
                        let connection = Ok(pooled);
                        waiter.deliver(Delivery { phases, started: Some(started), connection });
                    }
                    None => self.idle.borrow_mut().push(pooled),
                }
                self.serve_from_slots(now);
            }
            Err(failure) => {
                if refill {
                    self.growth.free_place();
                }
                self.fail(&failure, phases, started);
            }
        }
        self.grow_if_wanted(now, self.waiting.eager());
    }

    /// Fails the first who waits; all of them where nothing else could end their wait.
    fn fail(&self, failure: &Failure, phases: ConnectPhases, started: Moment) {
        while let Some(waiter) = self.waiting.pop(false) {
            let connection = Err(failure.clone());
            waiter.deliver(Delivery { phases, started: Some(started), connection });
            if self.connections() > 0 {
                return;
            }
        }
    }

    fn grow_if_wanted(self: &Rc<Self>, now: Moment, wanted: usize) {
        if !self.waiting.is_empty() {
            self.grow(now, wanted);
        }
    }

    /// HTTP/2: serves those who wait from free slots.
    fn serve_from_slots(&self, now: Moment) {
        while !self.waiting.is_empty() {
            let Some(slot) = self.opener.free_slot() else { return };
            self.offer(Pooled::new(slot, 0, now));
        }
    }

    /// Gives a connection to the first who waits for one, or keeps it.
    fn offer(&self, mut pooled: Pooled<O::Connection>) {
        if self.waiting.is_empty() {
            self.idle.borrow_mut().push(pooled);
            return;
        }
        if !pooled.connection.is_idle() {
            return self.forget(pooled);
        }
        match self.waiting.pop(pooled.connection.was_used()) {
            Some(waiter) => {
                let (phases, connection) = (ConnectPhases::default(), Ok(pooled));
                waiter.deliver(Delivery { phases, started: None, connection });
            }
            None => self.idle.borrow_mut().push(pooled),
        }
    }

    /// Looks at the queue from time to time, until nobody waits.
    fn watch(self: &Rc<Self>) {
        if self.watched.replace(true) {
            return;
        }
        let pool = Rc::clone(self);
        spawn_local(async move {
            loop {
                let looked = pool.opener.now();
                pool.opener.sleep(pool.growth.patience()).await;
                let Some(since) = pool.waiting.first_since() else { break };
                pool.growth.look(since <= looked);
                pool.grow(pool.opener.now(), pool.waiting.len());
            }
            pool.growth.look(false);
            pool.watched.set(false);
        });
    }
}

/// One who waits, and leaves the queue when dropped.
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

/// A connection that is in use. Dropping it closes it; [`release`](Self::release) returns it to its
/// pool.
#[derive(Debug)]
pub struct Lease<'p, O: Opener> {
    pool: &'p Rc<Inner<O>>,
    /// Some until it is released or dropped.
    connection: Option<Pooled<O::Connection>>,
}

impl<O: Opener> Lease<'_, O> {
    /// How long the connection had been idle when it was handed out.
    pub fn idle_for(&self) -> Nanos {
        self.connection.as_ref().map_or(Nanos::ZERO, Pooled::idle_for)
    }

    /// Whether the connection has carried a request before.
    pub fn was_used(&self) -> bool {
        Poolable::was_used(&**self)
    }

    /// After a failed exchange: whether the connection ended, and not only the exchange.
    pub fn has_ended(&self) -> bool {
        Poolable::has_ended(&**self)
    }

    /// Returns the connection to its pool: it can carry another request.
    pub fn release(mut self, now: Moment) {
        let Some(mut pooled) = self.connection.take() else { return };
        pooled.idle_since = now;
        let first = !std::mem::replace(&mut pooled.answered, true);
        self.pool.growth.answered(pooled.number, first, now.since(pooled.taken), now);
        self.pool.offer(pooled);
        self.pool.grow_if_wanted(now, self.pool.waiting.eager());
    }
}

impl<O: Opener> Drop for Lease<'_, O> {
    fn drop(&mut self) {
        let Some(pooled) = self.connection.take() else { return };
        self.pool.forget(pooled);
        if !self.pool.waiting.is_empty() {
            let now = self.pool.opener.now();
            self.pool.serve_from_slots(now);
            self.pool.grow_if_wanted(now, self.pool.waiting.len());
        }
    }
}

impl<O: Opener> Deref for Lease<'_, O> {
    type Target = O::Connection;

    fn deref(&self) -> &O::Connection {
        &self.connection.as_ref().expect("it is held until released").connection
    }
}

impl<O: Opener> DerefMut for Lease<'_, O> {
    fn deref_mut(&mut self) -> &mut O::Connection {
        &mut self.connection.as_mut().expect("it is held until released").connection
    }
}
