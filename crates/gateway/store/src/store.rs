//! One interface to both stores.

use crate::redis::{RedisBackend, RedisStore};
use crate::reservation::{Grant, Hold, Reservation};
use crate::{Budget, BudgetState, CacheCounts, CacheKey, Charge, Decision, MemoryStore};
use crate::{LimitKey, MAX_CHARGES, RedisSettings, Sizes, StoreError};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// The store of a process; every worker [attaches](Self::attach) to it.
#[derive(Clone, Debug)]
pub enum Backend {
    /// In the memory of this process.
    Memory(Arc<MemoryStore>),
    /// In Redis, shared by several processes.
    Redis(Arc<RedisBackend>),
}

impl Backend {
    /// In the memory of this process.
    pub fn memory(sizes: Sizes) -> Self {
        Self::Memory(Arc::new(MemoryStore::new(sizes)))
    }

    /// A store in Redis. Does not connect yet.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn redis(settings: RedisSettings) -> Result<Self, StoreError> {
        Ok(Self::Redis(Arc::new(RedisBackend::new(settings)?)))
    }

    /// A worker's store. Must run on the worker's own runtime, which then drives its connection to
    /// Redis. Succeeds without Redis too, and applies the failure mode until Redis answers.
    pub async fn attach(&self) -> Store {
        match self {
            Self::Memory(store) => Store::Memory(Arc::clone(store)),
            Self::Redis(backend) => {
                Store::Redis(Box::pin(RedisStore::connect(Arc::clone(backend))).await)
            }
        }
    }

    /// Operations without an answer (`store_errors`): always zero in memory.
    pub fn errors(&self) -> u64 {
        match self {
            Self::Memory(_) => 0,
            Self::Redis(backend) => backend.errors(),
        }
    }

    /// Whether a worker has no connection to Redis.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Redis(backend) if backend.is_lost())
    }

    /// Counts of the response cache.
    pub fn cache_counts(&self) -> CacheCounts {
        match self {
            Self::Memory(store) => store.cache_counts(),
            Self::Redis(backend) => backend.cache_counts(),
        }
    }

    /// Number of fetches in progress.
    pub fn fetches(&self) -> usize {
        match self {
            Self::Memory(store) => store.single_flight.in_progress(),
            Self::Redis(backend) => backend.single_flight().in_progress(),
        }
    }
}

/// One worker's store; clones share it.
///
/// `now` is always monotonic, in nanoseconds from a start that all workers of the process share.
/// Redis uses its own clock instead. In memory the futures are ready at once; the Redis futures are
/// boxed to keep all of them small.
#[derive(Clone, Debug)]
pub enum Store {
    /// In the memory of this process.
    Memory(Arc<MemoryStore>),
    /// In Redis.
    Redis(RedisStore),
}

impl Store {
    /// Checks a request against all its limits and counts it in all, or in none when one refuses.
    ///
    /// # Errors
    /// More than [`MAX_CHARGES`] limits, or a loss of Redis that is closed on loss.
    pub async fn check(&self, now: u64, charges: &[Charge<'_>]) -> Result<Decision, StoreError> {
        match self {
            Self::Memory(store) => store.check(now, charges),
            Self::Redis(_) if charges.len() > MAX_CHARGES => {
                Err(StoreError::TooManyLimits { count: charges.len(), max: MAX_CHARGES })
            }
            Self::Redis(store) => Box::pin(store.check(None, charges)).await,
        }
    }

    /// Reserves an estimate if the budget has enough left.
    ///
    /// # Errors
    /// A loss of Redis that is closed on loss. If open, the reservation is granted, and its cost is
    /// recorded if Redis is back by then.
    pub async fn reserve(
        &self,
        now: u64,
        key: LimitKey<'_>,
        budget: &Budget,
        estimate: u64,
    ) -> Result<Grant, StoreError> {
        let (hold, state) = match self {
            Self::Memory(store) => {
                let (account, state) = store.budgets.reserve(now, key, budget, estimate);
                (account.map(|account| Hold::Memory(Arc::clone(store), account)), state)
            }
            Self::Redis(store) => {
                let keys = Box::new(store.budget_keys(key, budget));
                let (id, state) = Box::pin(store.reserve(&keys, estimate)).await?;
                (id.map(|id| Hold::Redis(keys, id, store.clone())), state)
            }
        };
        Ok(match hold {
            Some(hold) => Grant::Reserved(Reservation { estimate, state, hold: Some(hold) }),
            None => Grant::Refused(state),
        })
    }

    /// The state of a budget now.
    ///
    /// # Errors
    /// A loss of Redis that is closed on loss. If open, the budget counts as unused.
    pub async fn budget(
        &self,
        now: u64,
        key: LimitKey<'_>,
        budget: &Budget,
    ) -> Result<BudgetState, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.budget(now, key, budget)),
            Self::Redis(store) => Box::pin(store.budget(key, budget)).await,
        }
    }

    /// A small value that has not expired.
    ///
    /// # Errors
    /// A loss of Redis that is closed on loss. If open, the value counts as absent.
    pub async fn value(&self, now: u64, key: &CacheKey) -> Result<Option<Bytes>, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.value(now, key)),
            Self::Redis(store) => Box::pin(store.value(key)).await,
        }
    }

    /// Stores a small value for `ttl`. In memory it may be evicted earlier.
    ///
    /// # Errors
    /// A loss of Redis that is closed on loss. If open, the value is not stored.
    pub async fn put_value(
        &self,
        now: u64,
        key: CacheKey,
        value: Bytes,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(store) => {
                store.put_value(now, key, value, ttl);
                Ok(())
            }
            Self::Redis(store) => Box::pin(store.put_value(&key, &value, ttl)).await,
        }
    }
}
