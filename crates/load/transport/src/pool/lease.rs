//! A connection in use.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos};

use super::inner::Inner;
use super::{Opener, Poolable, Pooled, idle_race};

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
        !is_shared && idle_race::explains(self.idle_for(), waited, round_trip)
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
