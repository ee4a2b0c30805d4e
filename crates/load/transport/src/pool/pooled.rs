//! A connection of a pool, with its state.

use std::ops::{Deref, DerefMut};

use plimsoll_measure::{Moment, Nanos};

/// A connection of a pool. Boxed, so that handing it out moves a pointer.
#[derive(Debug)]
pub(super) struct Pooled<C>(Box<PooledConnection<C>>);

#[derive(Debug)]
pub(super) struct PooledConnection<C> {
    pub(super) connection: C,
    /// Number in the pool.
    pub(super) number: u32,
    /// Whether it has received a response.
    pub(super) answered: bool,
    /// Time of the last checkout.
    pub(super) taken: Moment,
    /// Time since which it has been idle, or had been before the checkout.
    pub(super) idle_since: Moment,
}

impl<C> Pooled<C> {
    pub(super) fn new(connection: C, number: u32, now: Moment) -> Self {
        let answered = false;
        Self(Box::new(PooledConnection {
            connection,
            number,
            answered,
            taken: now,
            idle_since: now,
        }))
    }

    /// Time for which it had been idle at checkout.
    pub(super) fn idle_for(&self) -> Nanos {
        self.taken.since(self.idle_since)
    }
}

impl<C> Deref for Pooled<C> {
    type Target = PooledConnection<C>;

    fn deref(&self) -> &PooledConnection<C> {
        &self.0
    }
}

impl<C> DerefMut for Pooled<C> {
    fn deref_mut(&mut self) -> &mut PooledConnection<C> {
        &mut self.0
    }
}
