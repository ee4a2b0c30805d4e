//! Reservations: budget reserved for a request in progress.

use crate::memory::MemoryStore;
use crate::redis::RedisStore;
use crate::{BudgetState, budget_table, redis};
use std::sync::Arc;

/// The result of a reservation.
#[derive(Debug)]
pub enum Grant {
    /// Reserved; settle it once the cost is known.
    Reserved(Reservation),
    /// The budget is too small.
    Refused(BudgetState),
}

/// A reserved estimate. If it is dropped without [`settle`](Self::settle), it is released:
/// cancelled requests cost nothing. In Redis a task of the current runtime releases it; outside a
/// runtime, and when Redis is lost, its lease expires.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    pub(crate) estimate: u64,
    pub(crate) state: BudgetState,
    pub(crate) hold: Option<Hold>,
}

/// The store with the reservation.
#[derive(Debug)]
pub(crate) enum Hold {
    Memory(Arc<MemoryStore>, budget_table::ReservationRef),
    Redis(Box<redis::BudgetKeys>, u64, RedisStore),
}

impl Reservation {
    /// The reserved amount.
    pub const fn estimate(&self) -> u64 {
        self.estimate
    }

    /// The budget right after the reservation.
    pub const fn state(&self) -> &BudgetState {
        &self.state
    }

    /// Releases the estimate and charges the actual cost. `now` as in
    /// [`Store::check`](crate::Store::check). If Redis is lost, the cost is not recorded and counts
    /// as a store error.
    pub async fn settle(mut self, now: u64, actual: u64) {
        match self.hold.take() {
            Some(Hold::Memory(store, account)) => {
                store.budgets.settle(now, &account, self.estimate, actual);
            }
            Some(Hold::Redis(keys, id, store)) => {
                Box::pin(store.settle(&keys, id, self.estimate, actual)).await;
            }
            None => {}
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        match self.hold.take() {
            Some(Hold::Memory(store, account)) => {
                store.budgets.release(&account, self.estimate);
            }
            Some(Hold::Redis(keys, id, store)) if id > 0 => {
                let estimate = self.estimate;
                let release = async move { store.settle(&keys, id, estimate, 0).await };
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(release);
                }
            }
            _ => {}
        }
    }
}
