//! Single flight: of all requests that want the same response at the same time, one fetches it and
//! the others wait, across worker threads.
//!
//! Kept instead of `quick_cache` or `moka`: their waiters take the lead one after another when the
//! leader gives up, while here a leader that finds a response uncacheable releases all waiters at
//! once. Redis also needs single flight without a cache behind it.

use crate::{CacheKey, CachedResponse};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

const SHARDS: usize = 16;

/// All fetches in progress in a process.
#[derive(Debug)]
pub(crate) struct SingleFlight {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug, Default)]
struct Shard {
    fetches: HashMap<CacheKey, Entry>,
    /// Fetches that ended in this shard. If two readings differ, one ended between them.
    ended: u64,
}

#[derive(Debug)]
struct Entry {
    fetch: Arc<Fetch>,
    has_leader: bool,
    followers: usize,
}

/// One fetch.
///
/// `Notify` and not `watch`: when a leader fails, exactly one follower must wake, and a wake-up
/// that reaches a follower which has gone away must pass to the next. `notify_one` promises that.
#[derive(Debug, Default)]
struct Fetch {
    /// Set once at the end: the response, or `None` if every follower must fetch for itself.
    outcome: OnceLock<Option<Arc<CachedResponse>>>,
    wake: Notify,
}

/// The role that a caller gets.
#[derive(Debug)]
pub(crate) enum Join {
    /// Fetch the response.
    Lead(LeaderGuard),
    /// Wait for it.
    Follow(FollowerWait),
    /// The response has just arrived.
    Ready(Arc<CachedResponse>),
}

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum Completion {
    /// With the leader's response.
    Response(Arc<CachedResponse>),
    /// The leader failed: fetch now, for the other followers too.
    Lead(LeaderGuard),
    /// The response cannot be shared: fetch for yourself.
    Alone,
}

impl SingleFlight {
    pub(crate) fn new() -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(Self { hasher: RandomState::new(), shards })
    }

    fn shard(&self, key: &CacheKey) -> MutexGuard<'_, Shard> {
        let at = self.hasher.hash_one(key) % self.shards.len() as u64;
        let shard = &self.shards[usize::try_from(at).unwrap_or(0)];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of fetches that ended in the shard of this key.
    pub(crate) fn ended(&self, key: &CacheKey) -> u64 {
        self.shard(key).ended
    }

    /// Leads or follows. `look` is called once more, under the lock, before a new fetch begins: a
    /// leader stores its response before its fetch ends, so no caller that just missed it fetches
    /// again.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: CacheKey,
        look: impl FnOnce() -> Option<Arc<CachedResponse>>,
    ) -> Join {
        let mut shard = self.shard(&key);
        let Some(entry) = shard.fetches.get_mut(&key) else {
            if let Some(response) = look() {
                return Join::Ready(response);
            }
            let fetch = Arc::<Fetch>::default();
            let entry = Entry { fetch: Arc::clone(&fetch), has_leader: true, followers: 0 };
            shard.fetches.insert(key, entry);
            return Join::Lead(LeaderGuard { all: Arc::clone(self), key, fetch });
        };
        let fetch = Arc::clone(&entry.fetch);
        if entry.has_leader {
            entry.followers += 1;
            return Join::Follow(FollowerWait { all: Arc::clone(self), key, fetch, counted: true });
        }
        entry.has_leader = true;
        Join::Lead(LeaderGuard { all: Arc::clone(self), key, fetch })
    }

    /// Number of fetches in progress.
    pub(crate) fn in_progress(&self) -> usize {
        let locked = self.shards.iter().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        locked.map(|shard| shard.fetches.len()).sum()
    }
}

impl Shard {
    /// The entry of this fetch; a later fetch of the same key has its own.
    fn entry_of(&mut self, key: &CacheKey, fetch: &Arc<Fetch>) -> Option<&mut Entry> {
        self.fetches.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.fetch, fetch))
    }

    fn end(&mut self, key: &CacheKey) {
        self.fetches.remove(key);
        self.ended += 1;
    }
}

/// The duty to fetch. Dropped before [`complete`](Self::complete), it passes to a follower.
#[derive(Debug)]
pub(crate) struct LeaderGuard {
    all: Arc<SingleFlight>,
    key: CacheKey,
    fetch: Arc<Fetch>,
}

impl LeaderGuard {
    pub(crate) fn key(&self) -> CacheKey {
        self.key
    }

    /// Ends the fetch for all: with the response, or with `None` if it cannot be shared.
    pub(crate) fn complete(self, outcome: Option<Arc<CachedResponse>>) {
        // Set before the entry goes: a caller that finds no entry finds the response in the cache.
        let _ = self.fetch.outcome.set(outcome);
        self.all.shard(&self.key).end(&self.key);
        self.fetch.wake.notify_waiters();
    }
}

impl Drop for LeaderGuard {
    fn drop(&mut self) {
        if self.fetch.outcome.get().is_some() {
            return;
        }
        let mut shard = self.all.shard(&self.key);
        let Some(entry) = shard.entry_of(&self.key, &self.fetch) else { return };
        entry.has_leader = false;
        if entry.followers == 0 {
            shard.end(&self.key);
        } else {
            self.fetch.wake.notify_one();
        }
    }
}

/// A follower's wait. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct FollowerWait {
    all: Arc<SingleFlight>,
    key: CacheKey,
    fetch: Arc<Fetch>,
    /// Whether the entry still counts this follower.
    counted: bool,
}

impl FollowerWait {
    /// Waits until the leader ends, however it ends.
    pub(crate) async fn completion(mut self) -> Completion {
        let fetch = Arc::clone(&self.fetch);
        loop {
            // Listens before it looks, so that no wake-up is missed between the two.
            let mut woken = std::pin::pin!(fetch.wake.notified());
            woken.as_mut().enable();
            if let Some(outcome) = fetch.outcome.get() {
                return outcome.clone().map_or(Completion::Alone, Completion::Response);
            }
            if let Some(guard) = self.take_over() {
                return Completion::Lead(guard);
            }
            woken.await;
        }
    }

    /// Takes the lead if there is no leader.
    fn take_over(&mut self) -> Option<LeaderGuard> {
        let mut shard = self.all.shard(&self.key);
        let entry = shard.entry_of(&self.key, &self.fetch).filter(|entry| !entry.has_leader)?;
        entry.has_leader = true;
        entry.followers -= 1;
        self.counted = false;
        drop(shard);
        let (all, fetch) = (Arc::clone(&self.all), Arc::clone(&self.fetch));
        Some(LeaderGuard { all, key: self.key, fetch })
    }
}

impl Drop for FollowerWait {
    fn drop(&mut self) {
        if !self.counted {
            return;
        }
        let mut shard = self.all.shard(&self.key);
        let Some(entry) = shard.entry_of(&self.key, &self.fetch) else { return };
        entry.followers -= 1;
        if !entry.has_leader && entry.followers == 0 {
            shard.end(&self.key);
        }
    }
}
