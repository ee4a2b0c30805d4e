//! Cached responses with single flight: the public side of `single_flight`.

use crate::single_flight::{Completion, FollowerWait, Join, LeaderGuard};
use crate::{CacheKey, CachedResponse, Store};
use std::sync::Arc;
use std::time::Duration;

/// The result of a lookup.
#[derive(Debug)]
pub enum Lookup {
    /// The cached response.
    Hit(Arc<CachedResponse>),
    /// Fetch it; others may be waiting.
    Lead(Lead),
    /// Somebody is fetching it.
    Follow(Follow),
}

/// The duty to fetch a response. Dropped before [`fill`](Self::fill) or [`alone`](Self::alone),
/// because the fetch failed or was cancelled, it passes to one of those who wait.
#[derive(Debug)]
#[must_use]
pub struct Lead {
    guard: LeaderGuard,
    store: Store,
}

/// A wait for a response that another request fetches. It can be dropped at any time.
#[derive(Debug)]
#[must_use]
pub struct Follow {
    wait: FollowerWait,
    store: Store,
}

/// How a wait ended.
#[derive(Debug)]
pub enum Followed {
    /// The leader's response.
    Response(Arc<CachedResponse>),
    /// The leader failed: fetch it, for the others too.
    Lead(Lead),
    /// The response cannot be shared: fetch it for yourself.
    Alone,
}

impl Lead {
    /// Keeps the response for `ttl` and gives it to all who wait. `now` as in [`Store::check`].
    pub async fn fill(self, now: u64, response: CachedResponse, ttl: Duration) {
        let response = Arc::new(response);
        match &self.store {
            Store::Memory(store) => store.keep(now, self.guard.key(), Arc::clone(&response), ttl),
            Store::Redis(store) => Box::pin(store.keep(&self.guard.key(), &response, ttl)).await,
        }
        // Stored before the fetch ends: see `SingleFlight::join`.
        self.guard.complete(Some(response));
    }

    /// The response cannot be kept (an error, too large, not to be stored): all who wait fetch for
    /// themselves.
    pub fn alone(self) {
        self.guard.complete(None);
    }
}

impl Follow {
    /// Waits until the leader has the response, or has failed. There is no time limit here: the
    /// caller has one.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it gives up the place; if it was just chosen to lead, another is
    /// chosen.
    pub async fn wait(self) -> Followed {
        match self.wait.completion().await {
            Completion::Response(response) => Followed::Response(response),
            Completion::Lead(guard) => Followed::Lead(Lead { guard, store: self.store }),
            Completion::Alone => Followed::Alone,
        }
    }
}

impl Store {
    /// Finds a response, or takes part in fetching it. A loss of Redis is a miss. Single flight is
    /// per process: several gateways with one Redis fetch a response once each at most.
    pub async fn lookup(&self, now: u64, key: CacheKey) -> Lookup {
        match self {
            Self::Memory(memory) => {
                if let Some(response) = memory.cached(now, &key) {
                    return Lookup::Hit(response);
                }
                lookup_of(self, memory.single_flight.join(key, || memory.responses.find(&key, now)))
            }
            Self::Redis(redis) => Box::pin(lookup_in_redis(self, redis, key)).await,
        }
    }
}

async fn lookup_in_redis(store: &Store, redis: &crate::RedisStore, key: CacheKey) -> Lookup {
    let single_flight = redis.backend().single_flight();
    let before = single_flight.ended(&key);
    let found = redis.cached(&key).await;
    redis.backend().counters().looked_up(found.is_some());
    if let Some(response) = found {
        return Lookup::Hit(response);
    }
    match single_flight.join(key, || None) {
        // A fetch ended since Redis was asked: it may have been this one.
        Join::Lead(guard) if single_flight.ended(&key) != before => {
            match redis.cached(&key).await {
                Some(response) => {
                    guard.complete(Some(Arc::clone(&response)));
                    Lookup::Hit(response)
                }
                None => lookup_of(store, Join::Lead(guard)),
            }
        }
        join => lookup_of(store, join),
    }
}

fn lookup_of(store: &Store, join: Join) -> Lookup {
    match join {
        Join::Lead(guard) => Lookup::Lead(Lead { guard, store: store.clone() }),
        Join::Follow(wait) => Lookup::Follow(Follow { wait, store: store.clone() }),
        Join::Ready(response) => Lookup::Hit(response),
    }
}
