//! Budgets in memory.

use crate::bounded_map::{BoundedMap, Slot};
use crate::limit_key::{Digest, KeyDigester};
use crate::{Budget, BudgetCounter, BudgetState, LimitKey};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The purses of many tenants, shared by all workers of a process.
///
/// At most as many as it was made for. When more tenants than that have spent something, the one
/// that has spent least of eight is forgotten and begins anew.
#[derive(Debug)]
pub(crate) struct BudgetTable {
    digester: KeyDigester,
    counters: Mutex<BoundedMap<BudgetCounter>>,
}

/// Where something was reserved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservationRef {
    digest: Digest,
    epoch: u64,
    budget: Budget,
}

impl BudgetTable {
    pub(crate) fn new(tenants: usize) -> Self {
        let counters = Mutex::new(BoundedMap::new(tenants));
        Self { digester: KeyDigester::default(), counters }
    }

    fn digest(&self, key: LimitKey<'_>, budget: &Budget) -> Digest {
        self.digester.digest(key, budget.window_nanos())
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<BudgetCounter>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self, now: u64, key: LimitKey<'_>, budget: &Budget) -> BudgetState {
        let digest = self.digest(key, budget);
        let counter = self.lock().find(digest).map(|slot| slot.value).unwrap_or_default();
        counter.state(budget, now)
    }

    /// Reserves, and says what is left; no account when there is not enough.
    pub(crate) fn reserve(
        &self,
        now: u64,
        key: LimitKey<'_>,
        budget: &Budget,
        estimate: u64,
    ) -> (Option<ReservationRef>, BudgetState) {
        let digest = self.digest(key, budget);
        let mut bounded_map = self.lock();
        let slot = bounded_map.slot(digest, now, BudgetCounter::default);
        let reserved = slot.value.reserve(budget, now, estimate);
        note(slot, budget);
        let account = ReservationRef { digest, epoch: slot.epoch, budget: *budget };
        (reserved.then_some(account), slot.value.state(budget, now))
    }

    /// Takes what a request did cost. A counter that was forgotten meanwhile holds no reservation
    /// of it.
    pub(crate) fn settle(&self, now: u64, account: &ReservationRef, estimate: u64, actual: u64) {
        let mut bounded_map = self.lock();
        let slot = bounded_map.slot(account.digest, now, BudgetCounter::default);
        let estimate = if slot.epoch == account.epoch { estimate } else { 0 };
        slot.value.settle(&account.budget, now, estimate, actual);
        note(slot, &account.budget);
    }

    /// Gives back what was reserved. Needs no time: a counter that is not aged is aged at its next
    /// use.
    pub(crate) fn release(&self, account: &ReservationRef, estimate: u64) {
        let mut bounded_map = self.lock();
        if bounded_map.find(account.digest).is_some_and(|slot| slot.epoch == account.epoch) {
            let slot = bounded_map.slot(account.digest, 0, BudgetCounter::default);
            slot.value.release(estimate);
            note(slot, &account.budget);
        }
    }
}

fn note(slot: &mut Slot<BudgetCounter>, budget: &Budget) {
    slot.idle_from = slot.value.idle_from(budget);
    slot.used = slot.value.taken();
}
