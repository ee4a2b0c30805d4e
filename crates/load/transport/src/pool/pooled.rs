//! A connection of a pool, with what the pool knows of it.

use plimsoll_measure::{Moment, Nanos};

/// Boxed, so that handing it out moves a pointer.
pub(super) type Pooled<C> = Box<PooledConnection<C>>;

/// A connection of a pool.
#[derive(Debug)]
pub(super) struct PooledConnection<C> {
    pub(super) connection: C,
    /// Its number in the pool.
    pub(super) number: u32,
    /// Whether it has brought an answer.
    pub(super) answered: bool,
    /// When it was handed out last.
    pub(super) taken: Moment,
    /// Since when it has been idle, or was before it was handed out.
    pub(super) idle_since: Moment,
}

impl<C> PooledConnection<C> {
    pub(super) fn new(connection: C, number: u32, now: Moment) -> Pooled<C> {
        Box::new(Self { connection, number, answered: false, taken: now, idle_since: now })
    }

    /// How long it had been idle when it was handed out.
    pub(super) fn idle_for(&self) -> Nanos {
        self.taken.since(self.idle_since)
    }
}
