//! Looks up cached responses with single flight.

use crate::single_flight::{Entry, Fetch, SingleFlight};
use crate::{CacheKey, CachedResponse, Store};
use std::sync::Arc;
use std::time::Duration;

/// The result of a lookup.
#[derive(Debug)]
pub enum Lookup {
    /// The cached response.
    Hit(Arc<CachedResponse>),
    /// Fetch it; other requests may be waiting.
    Lead(Lead),
    /// Another request is fetching it.
    Follow(Follow),
}

/// The duty to fetch a response. If it is dropped before [`fill`](Self::fill) or
/// [`alone`](Self::alone), because the fetch failed or was cancelled, it passes to one of the
/// waiting requests.
#[derive(Debug)]
#[must_use]
pub struct Lead {
    store: Store,
    key: CacheKey,
    fetch: Arc<Fetch>,
}

/// A wait for a response that another request fetches. It can be dropped at any time.
#[derive(Debug)]
#[must_use]
pub struct Follow {
    store: Store,
    key: CacheKey,
    fetch: Arc<Fetch>,
    /// Whether the entry still counts this follower.
    counted: bool,
}

/// How a wait ended.
#[derive(Debug)]
pub enum Followed {
    /// The leader's response.
    Response(Arc<CachedResponse>),
    /// The leader failed: fetch it for all waiting requests.
    Lead(Lead),
    /// The response cannot be shared: fetch it for yourself.
    Alone,
}

impl Lead {
    /// Caches the response for `ttl` and passes it to all waiting requests. `now` as in
    /// [`Store::check`].
    pub async fn fill(self, now: u64, response: CachedResponse, ttl: Duration) {
        let response = Arc::new(response);
        match &self.store {
            Store::Memory(store) => store.keep(now, self.key, Arc::clone(&response), ttl),
            Store::Redis(store) => Box::pin(store.keep(&self.key, &response, ttl)).await,
        }
        // Stored before the fetch ends: see `Store::join`.
        self.complete(Some(response));
    }

    /// Reports an uncacheable response (an error, too large, not to be stored): all waiting
    /// requests fetch their own.
    pub fn alone(self) {
        self.complete(None);
    }

    /// Ends the fetch for all.
    fn complete(self, outcome: Option<Arc<CachedResponse>>) {
        // Set before the entry is removed, so that a caller without an entry finds the cached
        // response.
        let _ = self.fetch.outcome.set(outcome);
        self.store.single_flight().fetches().end(&self.key);
        self.fetch.wake.notify_waiters();
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if self.fetch.outcome.get().is_some() {
            return;
        }
        let mut fetches = self.store.single_flight().fetches();
        let Some(entry) = fetches.entry_of(&self.key, &self.fetch) else { return };
        entry.has_leader = false;
        if entry.followers == 0 {
            fetches.end(&self.key);
        } else {
            self.fetch.wake.notify_one();
        }
    }
}

impl Follow {
    /// Waits until the leader has the response or has failed. The caller sets the time limit.
    ///
    /// # Cancel safety
    /// If it is dropped while waiting, it leaves the queue; if it was just chosen to lead, another
    /// request is chosen.
    pub async fn wait(mut self) -> Followed {
        let fetch = Arc::clone(&self.fetch);
        loop {
            // Listens before it looks, so that no wake-up is missed between the two.
            let mut woken = std::pin::pin!(fetch.wake.notified());
            woken.as_mut().enable();
            if let Some(outcome) = fetch.outcome.get() {
                return outcome.clone().map_or(Followed::Alone, Followed::Response);
            }
            if let Some(lead) = self.take_over() {
                return Followed::Lead(lead);
            }
            woken.await;
        }
    }

    /// Takes the lead if no request has it.
    fn take_over(&mut self) -> Option<Lead> {
        let mut fetches = self.store.single_flight().fetches();
        let entry = fetches.entry_of(&self.key, &self.fetch).filter(|entry| !entry.has_leader)?;
        entry.has_leader = true;
        entry.followers -= 1;
        self.counted = false;
        drop(fetches);
        let (store, fetch) = (self.store.clone(), Arc::clone(&self.fetch));
        Some(Lead { store, key: self.key, fetch })
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        if !self.counted {
            return;
        }
        let mut fetches = self.store.single_flight().fetches();
        let Some(entry) = fetches.entry_of(&self.key, &self.fetch) else { return };
        entry.followers -= 1;
        if !entry.has_leader && entry.followers == 0 {
            fetches.end(&self.key);
        }
    }
}

impl Store {
    fn single_flight(&self) -> &SingleFlight {
        match self {
            Self::Memory(memory) => &memory.single_flight,
            Self::Redis(redis) => redis.backend().single_flight(),
        }
    }

    /// Leads or follows. `look` is called once more, under the lock, before a new fetch begins: a
    /// leader stores its response before its fetch ends, so no caller that just missed it fetches
    /// again.
    fn join(&self, key: CacheKey, look: impl FnOnce() -> Option<Arc<CachedResponse>>) -> Lookup {
        let mut fetches = self.single_flight().fetches();
        let store = self.clone();
        let Some(entry) = fetches.by_key.get_mut(&key) else {
            if let Some(response) = look() {
                return Lookup::Hit(response);
            }
            let fetch = Arc::<Fetch>::default();
            let entry = Entry { fetch: Arc::clone(&fetch), has_leader: true, followers: 0 };
            fetches.by_key.insert(key, entry);
            return Lookup::Lead(Lead { store, key, fetch });
        };
        let fetch = Arc::clone(&entry.fetch);
        if entry.has_leader {
            entry.followers += 1;
            return Lookup::Follow(Follow { store, key, fetch, counted: true });
        }
        entry.has_leader = true;
        Lookup::Lead(Lead { store, key, fetch })
    }

    /// Finds a response or joins its fetch. A loss of Redis counts as a miss. Single flight is per
    /// process: gateways that share a Redis fetch a response at most once each.
    pub async fn lookup(&self, now: u64, key: CacheKey) -> Lookup {
        match self {
            Self::Memory(memory) => match memory.cached(now, &key) {
                Some(response) => Lookup::Hit(response),
                None => self.join(key, || memory.responses.find(&key, now)),
            },
            Self::Redis(redis) => Box::pin(self.lookup_in_redis(redis, key)).await,
        }
    }

    async fn lookup_in_redis(&self, redis: &crate::RedisStore, key: CacheKey) -> Lookup {
        let single_flight = self.single_flight();
        let before = single_flight.fetches().ended;
        let found = redis.cached(&key).await;
        redis.backend().counters().looked_up(found.is_some());
        if let Some(response) = found {
            return Lookup::Hit(response);
        }
        match self.join(key, || None) {
            // A fetch ended after the Redis lookup: it may have been this one.
            Lookup::Lead(lead) if single_flight.fetches().ended != before => {
                match redis.cached(&key).await {
                    Some(response) => {
                        lead.complete(Some(Arc::clone(&response)));
                        Lookup::Hit(response)
                    }
                    None => Lookup::Lead(lead),
                }
            }
            joined => joined,
        }
    }
}
