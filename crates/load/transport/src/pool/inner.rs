//! The state of a pool: its connections, the queue, and the handshakes in progress.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use plimsoll_measure::{ConnectPhases, Moment, Nanos};
use tokio::task::spawn_local;

use super::growth::Growth;
use super::{Adds, Delivery, Demand, Opener, PoolLimits, Poolable, Pooled, WaitQueue, Waiter};
use crate::connection::Opened;
use crate::failure::Failure;

/// The state of a pool, shared with its handshakes.
#[derive(Debug)]
pub(super) struct Inner<O: Opener> {
    pub(super) opener: O,
    pub(super) limits: PoolLimits,
    pub(super) idle: RefCell<Vec<Pooled<O::Connection>>>,
    pub(super) waiting: WaitQueue<O::Connection>,
    pub(super) growth: Growth,
    /// HTTP/1.1: open connections.
    open: Cell<usize>,
    /// Connections opened so far.
    pub(super) opened: Cell<u32>,
    /// Shortest duration of a TCP connect.
    pub(super) round_trip: Cell<Option<Nanos>>,
    /// Whether a task checks the queue periodically.
    watched: Cell<bool>,
}

impl<O: Opener> Inner<O> {
    pub(super) fn new(opener: O, limits: PoolLimits) -> Self {
        Self {
            opener,
            limits,
            idle: RefCell::default(),
            waiting: WaitQueue::default(),
            growth: Growth::default(),
            open: Cell::new(0),
            opened: Cell::new(0),
            round_trip: Cell::new(None),
            watched: Cell::new(false),
        }
    }

    /// Takes an idle connection or a free slot on a shared one. Closed connections are dropped.
    pub(super) fn take_idle(self: &Rc<Self>, now: Moment) -> Option<Pooled<O::Connection>> {
        loop {
            // In a loop condition, the pool would stay borrowed while the connection is dropped.
            let Some(mut pooled) = self.idle.borrow_mut().pop() else { break };
            let idle_for = now.since(pooled.idle_since);
            if idle_for <= self.limits.idle_limit && pooled.connection.is_idle() {
                pooled.taken = now;
                return Some(pooled);
            }
            self.forget(pooled);
        }
        // Number 0, because a slot is not a connection.
        self.opener.free_slot().map(|slot| Pooled::new(slot, 0, now))
    }

    /// Drops a connection.
    pub(super) fn forget(&self, pooled: Pooled<O::Connection>) {
        let number = pooled.number;
        drop(pooled);
        self.closed(number);
    }

    /// Records that a connection was dropped.
    pub(super) fn closed(&self, number: u32) {
        // The slots of a shared connection come and go independently of it.
        if number > 0 && self.opener.shared_connections().is_none() {
            self.open.set(self.open.get().saturating_sub(1));
            self.growth.closed(number);
        }
    }

    /// Takes back a connection that has received a response.
    pub(super) fn take_back(self: &Rc<Self>, mut pooled: Pooled<O::Connection>, now: Moment) {
        pooled.idle_since = now;
        let first = !std::mem::replace(&mut pooled.answered, true);
        self.growth.answered(pooled.number, first, now.since(pooled.taken), now);
        self.offer(pooled);
        self.grow_if_wanted(now, self.waiting.eager());
    }

    /// Serves the queue after a connection was closed.
    pub(super) fn serve(self: &Rc<Self>) {
        if !self.waiting.is_empty() {
            let now = self.opener.now();
            self.serve_from_slots(now);
            self.grow_if_wanted(now, self.waiting.len());
        }
    }

    /// Adds an opened connection.
    pub(super) fn add(
        &self,
        connection: O::Connection,
        phases: ConnectPhases,
    ) -> Pooled<O::Connection> {
        let round_trip = self.round_trip.get().into_iter().chain(phases.tcp).min();
        self.round_trip.set(round_trip);
        let number = self.opened.get().saturating_add(1);
        self.opened.set(number);
        self.open.set(self.open.get() + 1);
        Pooled::new(connection, number, self.opener.now())
    }

    /// Number of connections, including those being opened.
    fn connections(&self) -> usize {
        let open = self.opener.shared_connections().unwrap_or_else(|| self.open.get());
        open + self.growth.handshakes()
    }

    /// Part of a wait that the pool may have caused: all of it, except at the user's connection
    /// limit.
    pub(super) fn own_part(&self, since: Moment, until: Moment) -> Nanos {
        if self.connections() >= self.limits.max_connections {
            return Nanos::ZERO;
        }
        until.since(since)
    }

    /// Number of connections that a newly queued demand may request.
    pub(super) fn demand_of(&self, demand: Demand) -> usize {
        let busy = self.connections() > self.idle.borrow().len();
        if demand.is_late() && self.growth.is_fast() && busy {
            self.waiting.eager()
        } else {
            self.waiting.len()
        }
    }

    /// Starts up to this many handshakes for the queue, as far as that is allowed now.
    pub(super) fn grow(self: &Rc<Self>, now: Moment, wanted: usize, adds: Adds) {
        let slots = self.opener.slots();
        while wanted > self.growth.handshakes().saturating_mul(slots) {
            if self.connections() >= self.limits.max_connections && !self.make_room() {
                break;
            }
            let refill = self.growth.take_place();
            let only = self.connections() == 0;
            let at_once = refill || only || adds == Adds::AtOnce;
            if !at_once && !self.growth.may_add(now) {
                break;
            }
            self.start_handshake(now, refill);
        }
        if self.waiting.len() > self.growth.handshakes().saturating_mul(slots) {
            self.watch();
        }
    }

    /// Closes an idle connection that the queue cannot use.
    fn make_room(&self) -> bool {
        let idle = self.idle.borrow_mut().pop();
        idle.map(|pooled| self.forget(pooled)).is_some()
    }

    fn start_handshake(self: &Rc<Self>, now: Moment, refill: bool) {
        self.growth.handshake_began(refill, now);
        let pool = Rc::clone(self);
        spawn_local(async move {
            let opened = pool.opener.open().await;
            pool.growth.handshake_ended(refill, now);
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
                let pooled = self.add(connection, phases);
                self.growth.opened(pooled.number, started, now);
                match self.waiting.pop(false) {
                    Some(waiter) => {
                        self.waited(&waiter, now);
                        let connection = Ok(pooled);
                        waiter.deliver(Delivery { phases, started: Some(started), connection });
                    }
                    None => self.idle.borrow_mut().push(pooled),
                }
                self.serve_from_slots(now);
            }
            Err(failure) => {
                self.growth.handshake_failed();
                if refill {
                    self.growth.free_place();
                }
                self.fail(&failure, phases, started);
            }
        }
        self.grow_if_wanted(now, self.waiting.eager());
    }

    /// Fails the first demand in the queue, or all if no other event could end their wait.
    fn fail(&self, failure: &Failure, phases: ConnectPhases, started: Moment) {
        while let Some(waiter) = self.waiting.pop(false) {
            let connection = Err(failure.clone());
            waiter.deliver(Delivery { phases, started: Some(started), connection });
            if self.connections() > 0 {
                return;
            }
        }
    }

    pub(super) fn grow_if_wanted(self: &Rc<Self>, now: Moment, wanted: usize) {
        if !self.waiting.is_empty() {
            self.grow(now, wanted, Adds::WithinLimit);
        }
    }

    /// HTTP/2: serves the queue from free slots.
    pub(super) fn serve_from_slots(&self, now: Moment) {
        while !self.waiting.is_empty() {
            let Some(slot) = self.opener.free_slot() else { return };
            self.offer(Pooled::new(slot, 0, now));
        }
    }

    /// Records the end of a wait.
    fn waited(&self, waiter: &Waiter<O::Connection>, now: Moment) {
        if !waiter.is_ours {
            self.growth.waited(waiter.demand.now, now);
        }
    }

    /// Gives a connection to the first demand in the queue, or keeps it.
    pub(super) fn offer(&self, mut pooled: Pooled<O::Connection>) {
        if self.waiting.is_empty() {
            self.idle.borrow_mut().push(pooled);
            return;
        }
        if !pooled.connection.is_idle() {
            return self.forget(pooled);
        }
        match self.waiting.pop(pooled.connection.was_used()) {
            Some(waiter) => {
                self.waited(&waiter, pooled.idle_since);
                let (phases, connection) = (ConnectPhases::default(), Ok(pooled));
                waiter.deliver(Delivery { phases, started: None, connection });
            }
            None => self.idle.borrow_mut().push(pooled),
        }
    }

    /// Checks the queue periodically until it is empty.
    fn watch(self: &Rc<Self>) {
        if self.watched.replace(true) {
            return;
        }
        let pool = Rc::clone(self);
        spawn_local(async move {
            let looked = Cell::new(pool.opener.now());
            while pool.look_again(&looked).await {}
            pool.growth.drained();
            pool.watched.set(false);
        });
    }

    /// Checks the queue after a while; returns false if it is empty. `looked`: time of the last
    /// check.
    async fn look_again(self: &Rc<Self>, looked: &Cell<Moment>) -> bool {
        let began = self.opener.now();
        let pause = self.growth.look_after();
        self.opener.sleep(pause).await;
        let since = self.waiting.first_since();
        if let Some(since) = since {
            let now = self.opener.now();
            // Time beyond the pause is a stall of the generator, during which the wait could not
            // end.
            let ours = now.since(began).saturating_sub(pause);
            let wait = now.since(since).saturating_sub(ours);
            if self.growth.wants_probe(wait) {
                self.probe(now);
            }
            if now >= looked.get() + self.growth.patience() {
                looked.set(now);
                self.growth.look(wait);
                self.grow(now, self.waiting.len(), Adds::WithinLimit);
            }
        }
        since.is_some()
    }

    /// Opens one connection to find out whether the target or its connections are busy.
    fn probe(self: &Rc<Self>, now: Moment) {
        if self.connections() < self.limits.max_connections {
            self.growth.probe_began();
            let refill = self.growth.take_place();
            self.start_handshake(now, refill);
        }
    }

    /// Opens connections without demand, until `next` has reached `count` or one fails.
    pub(super) async fn open_ahead(&self, next: &Cell<usize>, failed: &Cell<usize>, count: usize) {
        while next.get() < count && failed.get() == 0 {
            next.set(next.get() + 1);
            let started = self.opener.now();
            self.growth.handshake_began(true, started);
            let Opened { connection, phases } = self.opener.open().await;
            self.growth.set_up_took(self.opener.now().since(started));
            self.growth.handshake_ended(true, started);
            match connection {
                Ok(connection) => {
                    let pooled = self.add(connection, phases);
                    self.idle.borrow_mut().push(pooled);
                }
                Err(_) => failed.set(failed.get() + 1),
            }
        }
    }
}

// A connection in use.

/// A connection in use. Dropping it closes it; [`release`](Self::release) returns it to its pool.
#[derive(Debug)]
pub struct Lease<'p, O: Opener> {
    connection: Pooled<O::Connection>,
    /// Declared after the connection, to be dropped after it.
    place: Place<'p, O>,
}

/// The place of a connection in its pool.
#[derive(Debug)]
struct Place<'p, O: Opener> {
    pool: &'p Rc<Inner<O>>,
    number: u32,
    /// Whether the connection was returned to the pool.
    released: bool,
}

impl<'p, O: Opener> Lease<'p, O> {
    pub(super) fn new(pool: &'p Rc<Inner<O>>, connection: Pooled<O::Connection>) -> Self {
        let place = Place { pool, number: connection.number, released: false };
        Self { connection, place }
    }

    /// Time for which the connection had been idle at checkout.
    pub fn idle_for(&self) -> Nanos {
        self.connection.idle_for()
    }

    /// Whether the target may have closed the connection as idle before it saw the request that it
    /// did not answer. `waited`: time from the request to the news of the close.
    ///
    /// Never in HTTP/2, where the target reports the requests that it has not seen.
    pub fn may_have_been_closed_idle(&self, waited: Nanos) -> bool {
        let pool = self.place.pool;
        let is_shared = pool.opener.shared_connections().is_some();
        let round_trip = pool.round_trip.get().unwrap_or_default();
        !is_shared && explains(self.idle_for(), waited, round_trip)
    }

    /// Whether the connection has been used for a request before.
    pub fn was_used(&self) -> bool {
        Poolable::was_used(&**self)
    }

    /// Whether the connection itself ended, rather than only the failed exchange.
    pub fn has_ended(&self) -> bool {
        Poolable::has_ended(&**self)
    }

    /// Returns the connection to its pool, for another request.
    pub fn release(self, now: Moment) {
        let Self { connection, mut place } = self;
        place.released = true;
        place.pool.take_back(connection, now);
    }
}

impl<O: Opener> Deref for Lease<'_, O> {
    type Target = O::Connection;

    fn deref(&self) -> &O::Connection {
        &self.connection.connection
    }
}

impl<O: Opener> DerefMut for Lease<'_, O> {
    fn deref_mut(&mut self) -> &mut O::Connection {
        &mut self.connection.connection
    }
}

impl<O: Opener> Drop for Place<'_, O> {
    fn drop(&mut self) {
        if !self.released {
            self.pool.closed(self.number);
            self.pool.serve();
        }
    }
}

// Decides whether the close of an idle connection explains a request without a response: the
// target closed it before the request arrived, and therefore did not process it. ADR 0095 has the
// reasons.

/// Minimum idle time for a close by an idle timeout; no server closes sooner. A shorter pause is a
/// gap between two requests of a busy connection, where a close aborts the request.
const LEAST_IDLE: Nanos = Nanos::from_millis(100);
/// Allowance for both hosts to wake up. The news of the close was in transit or comes back at once:
/// at most a round trip after the request.
const WAKING_UP: Nanos = Nanos::from_millis(2);

/// Whether the close explains it. `idle`: time for which the connection had been idle; `waited`:
/// time from the request to the news of the close.
pub(super) fn explains(idle: Nanos, waited: Nanos, round_trip: Nanos) -> bool {
    idle >= LEAST_IDLE.max(round_trip) && waited <= round_trip + WAKING_UP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_within_a_round_trip_of_an_idle_connection_is_a_race() {
        for (sentence, idle_us, waited_us, round_trip_us, expected) in [
            ("on one host, after five seconds", 5_000_000, 40, 50, true),
            ("the news came before the request was sent", 5_000_000, 0, 50, true),
            ("far away, within a round trip", 60_000_000, 79_000, 80_000, true),
            ("far away, later than that", 60_000_000, 83_000, 80_000, false),
            ("the target worked for five milliseconds", 5_000_000, 5_000, 50, false),
            ("the target worked for most of a second", 5_000_000, 800_000, 50, false),
            ("the connection was in use until now", 25, 40, 50, false),
            ("the connection was idle for a moment", 99_000, 40, 50, false),
            ("not even a round trip", 150_000, 100_000, 200_000, false),
        ] {
            let [idle, waited, round_trip] =
                [idle_us, waited_us, round_trip_us].map(Nanos::from_micros);
            assert_eq!(explains(idle, waited, round_trip), expected, "{sentence}");
        }
    }
}
