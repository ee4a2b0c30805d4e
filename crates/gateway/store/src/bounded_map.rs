//! A map of counts with a bounded number of keys and CLOCK eviction.

use crate::limit_key::{Digest, IdentityHasher};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Slots that are examined for eviction when the map is full.
const LOOKED_AT: usize = 8;

/// One key's count.
#[derive(Debug)]
pub(crate) struct Slot<V> {
    digest: Digest,
    /// From this time on the slot counts as unused.
    pub(crate) idle_from: u64,
    /// The count that eviction would lose; used to choose the victim.
    pub(crate) used: u64,
    /// Distinguishes the keys that have used the slot.
    pub(crate) epoch: u64,
    pub(crate) value: V,
}

/// Maps keys to slots; a new key replaces an idle one if it finds one.
///
/// CLOCK eviction: a position moves round the slots. A new key examines the next two and replaces
/// an idle one, so the map grows with the keys in use and not with all keys ever seen. When the map
/// is full, the least used of the next eight is evicted: a flood of new keys with one request each
/// evicts its own entries, and not those of heavy users. Each insertion examines a few slots and
/// never all.
#[derive(Debug)]
pub(crate) struct BoundedMap<V> {
    index: HashMap<Digest, usize, BuildHasherDefault<IdentityHasher>>,
    slots: Vec<Slot<V>>,
    room: usize,
    hand: usize,
    epochs: u64,
}

impl<V> BoundedMap<V> {
    /// For at most `room` keys, at least one.
    pub(crate) fn new(room: usize) -> Self {
        Self { index: HashMap::default(), slots: Vec::new(), room: room.max(1), hand: 0, epochs: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn find(&self, digest: Digest) -> Option<&Slot<V>> {
        self.index.get(&digest).and_then(|&at| self.slots.get(at))
    }

    /// The slot of a key; creates one with `fresh` if needed.
    pub(crate) fn slot(
        &mut self,
        digest: Digest,
        now: u64,
        fresh: impl FnOnce() -> V,
    ) -> &mut Slot<V> {
        let known = self.index.get(&digest).copied();
        let at = known.unwrap_or_else(|| self.place(digest, now, fresh()));
        &mut self.slots[at]
    }

    fn place(&mut self, digest: Digest, now: u64, value: V) -> usize {
        self.epochs += 1;
        let slot = Slot { digest, idle_from: 0, used: 0, epoch: self.epochs, value };
        let at = self.victim(now).unwrap_or(self.slots.len());
        if let Some(old) = self.slots.get_mut(at) {
            let old = std::mem::replace(old, slot);
            self.index.remove(&old.digest);
        } else {
            self.slots.push(slot);
        }
        self.index.insert(digest, at);
        at
    }

    /// The slot to reuse for a new key; `None` to add one.
    fn victim(&mut self, now: u64) -> Option<usize> {
        let full = self.slots.len() >= self.room;
        let looked_at = if full { LOOKED_AT } else { 2 }.min(self.slots.len());
        let seen: [usize; LOOKED_AT] = std::array::from_fn(|step| self.step(step));
        self.hand = self.step(looked_at);
        let seen = &seen[..looked_at];
        let idle = seen.iter().copied().find(|&at| self.slots[at].idle_from <= now);
        idle.or_else(|| {
            full.then(|| seen.iter().copied().min_by_key(|&at| self.slots[at].used)).flatten()
        })
    }

    fn step(&self, steps: usize) -> usize {
        (self.hand + steps) % self.slots.len().max(1)
    }
}
