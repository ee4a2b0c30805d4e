//! Single flight: of concurrent requests for the same response, one fetches it and the others wait,
//! across worker threads.
//!
//! Kept instead of `quick_cache` or `moka`: their waiters take the lead one after another when the
//! leader gives up, while here a leader that finds a response uncacheable releases all waiters at
//! once. Redis also needs single flight without a cache behind it.

use crate::{CacheKey, CachedResponse};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// All fetches in progress in a process.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight(Mutex<Fetches>);

#[derive(Debug, Default)]
pub(crate) struct Fetches {
    pub(crate) by_key: HashMap<CacheKey, Entry>,
    /// Number of ended fetches. If two readings differ, one ended between them.
    pub(crate) ended: u64,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) fetch: Arc<Fetch>,
    pub(crate) has_leader: bool,
    pub(crate) followers: usize,
}

/// One fetch.
///
/// `Notify` and not `watch`: when a leader fails, exactly one follower must wake, and a wake-up
/// that reaches a dropped follower must pass to the next. `notify_one` guarantees that.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    /// Set once at the end: the response, or `None` if every follower must fetch for itself.
    pub(crate) outcome: OnceLock<Option<Arc<CachedResponse>>>,
    pub(crate) wake: Notify,
}

impl SingleFlight {
    pub(crate) fn fetches(&self) -> MutexGuard<'_, Fetches> {
        self.0.lock()
    }

    /// Number of fetches in progress.
    pub(crate) fn in_progress(&self) -> usize {
        self.fetches().by_key.len()
    }
}

impl Fetches {
    /// The entry of this fetch; a later fetch of the same key has its own entry.
    pub(crate) fn entry_of(&mut self, key: &CacheKey, fetch: &Arc<Fetch>) -> Option<&mut Entry> {
        self.by_key.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.fetch, fetch))
    }

    pub(crate) fn end(&mut self, key: &CacheKey) {
        self.by_key.remove(key);
        self.ended += 1;
    }
}
