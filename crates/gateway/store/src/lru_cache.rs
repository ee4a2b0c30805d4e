//! Values kept by recent use within a number of bytes.

use crate::CacheKey;
use lru::LruCache;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The largest value, as a part of all bytes.
const LARGEST: usize = 16;

/// Counts of a cache since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Found and not expired.
    pub hits: u64,
    /// Not found, or expired.
    pub misses: u64,
    /// Evicted.
    pub evictions: u64,
    /// Not stored, because larger than a sixteenth of the cache.
    pub oversize: u64,
}

/// The counters behind [`CacheCounts`].
#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    oversize: AtomicU64,
}

impl CacheCounters {
    pub(crate) fn looked_up(&self, found: bool) {
        let counter = if found { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        CacheCounts {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            oversize: self.oversize.load(Relaxed),
        }
    }
}

/// Values by recent use.
///
/// A value larger than a sixteenth of the cache is not stored. Expired values are removed when they
/// are requested or when room is needed.
#[derive(Debug)]
pub(crate) struct ByteLru<V> {
    values: Mutex<Values<V>>,
    pub(crate) counters: CacheCounters,
}

#[derive(Debug)]
struct Values<V> {
    entries: LruCache<CacheKey, Entry<V>>,
    bytes: usize,
    room: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: usize,
    expires: u64,
}

impl<V: Clone> ByteLru<V> {
    pub(crate) fn new(bytes: usize) -> Self {
        let values = Values { entries: LruCache::unbounded(), bytes: 0, room: bytes };
        Self { values: Mutex::new(values), counters: CacheCounters::default() }
    }

    /// The value of a key, which becomes the most recently used; not counted as hit or miss.
    pub(crate) fn find(&self, key: &CacheKey, now: u64) -> Option<V> {
        let mut values = self.values.lock();
        let entry = values.entries.get(key)?;
        if now < entry.expires {
            return Some(entry.value.clone());
        }
        values.remove(key);
        None
    }

    /// Stores a value until `expires`.
    pub(crate) fn keep(&self, key: CacheKey, value: V, weight: usize, expires: u64) {
        let mut values = self.values.lock();
        values.remove(&key);
        if weight > values.room / LARGEST {
            self.counters.oversize.fetch_add(1, Relaxed);
            return;
        }
        values.bytes += weight;
        values.entries.put(key, Entry { value, weight, expires });
        self.counters.evictions.fetch_add(values.shrink(), Relaxed);
    }

    /// Stored bytes and values.
    #[cfg(test)]
    fn held(&self) -> (usize, usize) {
        let values = self.values.lock();
        (values.bytes, values.entries.len())
    }
}

impl<V> Values<V> {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(old) = self.entries.pop(key) {
            self.bytes -= old.weight;
        }
    }

    /// Evicts the least recently used values until the rest fits; returns their number.
    fn shrink(&mut self) -> u64 {
        let mut evicted = 0;
        while self.bytes > self.room {
            let Some((_, old)) = self.entries.pop_lru() else { break };
            self.bytes -= old.weight;
            evicted += 1;
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> CacheKey {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        CacheKey(bytes)
    }

    #[test]
    fn never_holds_more_bytes_than_it_has_room_for() {
        let lru_cache = ByteLru::new(16 * 1_000);
        for number in 0..10_000 {
            lru_cache.keep(key(number), number, 100, u64::MAX);
            assert!(lru_cache.held().0 <= 16_000);
        }
        assert_eq!(lru_cache.held(), (16_000, 160), "all room is taken");
        assert_eq!(lru_cache.counters.counts().evictions, 10_000 - 160);
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let lru_cache = ByteLru::new(20 * 100);
        for number in 0..20 {
            lru_cache.keep(key(number), number, 100, u64::MAX);
        }
        assert_eq!(lru_cache.find(&key(0), 0), Some(0), "used: goes last");
        lru_cache.keep(key(20), 20, 100, u64::MAX);
        assert_eq!(lru_cache.find(&key(0), 0), Some(0));
        assert_eq!(lru_cache.find(&key(1), 0), None, "the oldest that was not used");
        assert_eq!(lru_cache.find(&key(20), 0), Some(20));
    }

    #[test]
    fn too_old_is_not_found_and_gives_its_bytes_back() {
        let lru_cache = ByteLru::new(16_000);
        lru_cache.keep(key(1), 1, 100, 50);
        assert_eq!(lru_cache.find(&key(1), 49), Some(1));
        assert_eq!(lru_cache.find(&key(1), 50), None);
        assert_eq!(lru_cache.held(), (0, 0));
    }

    #[test]
    fn replaced_values_are_counted_once_and_large_ones_not_kept() {
        let lru_cache = ByteLru::new(16_000);
        lru_cache.keep(key(1), 1, 100, 50);
        lru_cache.keep(key(1), 2, 300, 50);
        assert_eq!(lru_cache.held(), (300, 1));
        lru_cache.keep(key(2), 3, 1_001, 50);
        assert_eq!(lru_cache.held(), (300, 1));
        assert_eq!(lru_cache.counters.counts().oversize, 1);
    }
}
