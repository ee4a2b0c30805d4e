//! A connection in use.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos};

use super::inner::Inner;
use super::{Opener, Poolable, Pooled};

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
