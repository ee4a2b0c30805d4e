//! The store in the memory of one process.

use crate::approval_table::ApprovalTable;
use crate::budget_table::BudgetTable;
use crate::lru_cache::ByteLru;
use crate::session_table::SessionTable;
use crate::single_flight::SingleFlight;
use crate::{
    Budget, BudgetState, CacheCounts, CacheKey, CachedResponse, Charge, Decision, Limiter,
};
use crate::{LimitKey, StoreError};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Size limits of a memory store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sizes {
    /// Keys with rate limits in use at once; about 280 bytes each.
    pub keys: usize,
    /// Tenants with budgets in use at once; about 150 bytes each.
    pub tenants: usize,
    /// Bytes of cached responses.
    pub cache_bytes: usize,
    /// Bytes of small values.
    pub value_bytes: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { keys: 1 << 17, tenants: 1 << 16, cache_bytes: 256 << 20, value_bytes: 16 << 20 }
    }
}

/// Everything in memory, shared by the workers of a process.
#[derive(Debug)]
pub struct MemoryStore {
    limiter: Limiter,
    pub(crate) budgets: BudgetTable,
    pub(crate) responses: ByteLru<Arc<CachedResponse>>,
    values: ByteLru<Bytes>,
    pub(crate) sessions: SessionTable,
    pub(crate) approvals: ApprovalTable,
    pub(crate) single_flight: SingleFlight,
}

impl MemoryStore {
    /// An empty store. It allocates memory as it fills.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            limiter: Limiter::new(sizes.keys),
            budgets: BudgetTable::new(sizes.tenants),
            responses: ByteLru::new(sizes.cache_bytes),
            values: ByteLru::new(sizes.value_bytes),
            sessions: SessionTable::default(),
            approvals: ApprovalTable::default(),
            single_flight: SingleFlight::default(),
        }
    }

    /// See [`Limiter::check`].
    ///
    /// # Errors
    /// More than [`MAX_CHARGES`](crate::MAX_CHARGES) limits.
    pub fn check(&self, now: u64, charges: &[Charge<'_>]) -> Result<Decision, StoreError> {
        self.limiter.check(now, charges)
    }

    /// The state of a budget now.
    pub fn budget(&self, now: u64, key: LimitKey<'_>, budget: &Budget) -> BudgetState {
        self.budgets.state(now, key, budget)
    }

    /// A cached response that has not expired; counted as hit or miss.
    pub fn cached(&self, now: u64, key: &CacheKey) -> Option<Arc<CachedResponse>> {
        let found = self.responses.find(key, now);
        self.responses.counters.looked_up(found.is_some());
        found
    }

    /// Counts of the response cache.
    pub fn cache_counts(&self) -> CacheCounts {
        self.responses.counters.counts()
    }

    pub(crate) fn keep(
        &self,
        now: u64,
        key: CacheKey,
        response: Arc<CachedResponse>,
        ttl: Duration,
    ) {
        let weight = response.weight();
        self.responses.keep(key, response, weight, after(now, ttl));
    }

    /// A small value that has not expired.
    pub fn value(&self, now: u64, key: &CacheKey) -> Option<Bytes> {
        self.values.find(key, now)
    }

    /// Stores a small value.
    pub fn put_value(&self, now: u64, key: CacheKey, value: Bytes, ttl: Duration) {
        let weight = value.len() + 160;
        self.values.keep(key, value, weight, after(now, ttl));
    }
}

fn after(now: u64, ttl: Duration) -> u64 {
    now.saturating_add(u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX))
}
