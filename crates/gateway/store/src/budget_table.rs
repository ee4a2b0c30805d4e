//! Budgets in memory.

use crate::bounded_map::{BoundedMap, Slot};
use crate::limit_key::{Digest, KeyDigester};
use crate::{Budget, BudgetCounter, BudgetState, LimitKey};
use parking_lot::Mutex;

/// The budget counters of many tenants, shared by all workers of a process.
///
/// The number of counters is bounded. When more tenants have spent something, the least spender of
/// eight examined loses its counter and starts anew.
#[derive(Debug)]
pub(crate) struct BudgetTable {
    digester: KeyDigester,
    counters: Mutex<BoundedMap<BudgetCounter>>,
}

/// The place of a reservation.
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

    pub(crate) fn state(&self, now: u64, key: LimitKey<'_>, budget: &Budget) -> BudgetState {
        let digest = self.digest(key, budget);
        let counter = self.counters.lock().find(digest).map(|slot| slot.value).unwrap_or_default();
        counter.state(budget, now)
    }

    /// Reserves and returns the remaining budget; no reservation if the budget is too small.
    pub(crate) fn reserve(
        &self,
        now: u64,
        key: LimitKey<'_>,
        budget: &Budget,
        estimate: u64,
    ) -> (Option<ReservationRef>, BudgetState) {
        let digest = self.digest(key, budget);
        let mut bounded_map = self.counters.lock();
        let slot = bounded_map.slot(digest, now, BudgetCounter::default);
        let reserved = slot.value.reserve(budget, now, estimate);
        note(slot, budget);
        let account = ReservationRef { digest, epoch: slot.epoch, budget: *budget };
        (reserved.then_some(account), slot.value.state(budget, now))
    }

    /// Charges the actual cost of a request. An evicted counter no longer has the reservation.
    pub(crate) fn settle(&self, now: u64, account: &ReservationRef, estimate: u64, actual: u64) {
        let mut bounded_map = self.counters.lock();
        let slot = bounded_map.slot(account.digest, now, BudgetCounter::default);
        let estimate = if slot.epoch == account.epoch { estimate } else { 0 };
        slot.value.settle(&account.budget, now, estimate, actual);
        note(slot, &account.budget);
    }

    /// Releases a reservation. Needs no time: the next use of the counter advances its window.
    pub(crate) fn release(&self, account: &ReservationRef, estimate: u64) {
        let mut bounded_map = self.counters.lock();
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
