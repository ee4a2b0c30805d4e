//! Sessions in memory.

use crate::record::check_size;
use crate::session::{millis, nanos};
use crate::{Moment, NewSession, RecordError, RecordId, Session, SessionRules};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts with a lock each.
const SHARDS: usize = 16;

/// Expired sessions of its part that a new one takes away, so that no operation takes long.
const FEW: usize = 8;

/// All sessions of a process, shared by its workers.
///
/// Expired ones go when new ones come: a few of the same part each time, and all of them when there
/// is no room. Live ones never give way.
#[derive(Debug)]
pub(crate) struct SessionTable {
    shards: Box<[Mutex<Shard>]>,
    held: AtomicUsize,
}

#[derive(Debug, Default)]
struct Shard {
    by_id: HashMap<RecordId, Entry>,
    by_expiry: BTreeSet<(u64, RecordId)>,
}

/// A session as it is kept. Nothing in it keeps a larger buffer alive.
#[derive(Debug)]
struct Entry {
    owner: Box<str>,
    metadata: Box<[u8]>,
    created_at: u64,
    expires_at: u64,
    /// Monotonic nanoseconds.
    expires: u64,
    calls: u32,
}

impl Default for SessionTable {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, held: AtomicUsize::new(0) }
    }
}

impl SessionTable {
    /// Sessions held, those that have expired and are not yet gone included.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    pub(crate) fn create(
        &self,
        at: Moment,
        rules: &SessionRules,
        new: &NewSession<'_>,
    ) -> Result<Session, RecordError> {
        check_size(new.metadata.len(), rules.metadata_bytes)?;
        if !self.take_room(rules.sessions) {
            self.remove_expired(at.now);
            if !self.take_room(rules.sessions) {
                return Err(RecordError::Full);
            }
        }
        let entry = Entry {
            owner: Box::from(new.owner),
            metadata: Box::from(new.metadata),
            created_at: at.unix_ms,
            expires_at: at.unix_ms.saturating_add(millis(new.ttl)),
            expires: at.now.saturating_add(nanos(new.ttl)),
            calls: 0,
        };
        let session = entry.session();
        let mut shard = self.shard(new.id);
        let gone = shard.remove_expired(at.now, FEW);
        let replaced = usize::from(shard.remove(new.id));
        shard.by_expiry.insert((entry.expires, new.id));
        shard.by_id.insert(new.id, entry);
        drop(shard);
        self.held.fetch_sub(gone + replaced, Relaxed);
        Ok(session)
    }

    pub(crate) fn get(&self, now: u64, owner: &str, id: RecordId) -> Result<Session, RecordError> {
        let mut shard = self.shard(id);
        shard.live(now, owner, id).map(|entry| entry.session())
    }

    /// Counts a tool call; the number of calls with it.
    pub(crate) fn count_call(
        &self,
        now: u64,
        rules: &SessionRules,
        owner: &str,
        id: RecordId,
    ) -> Result<u32, RecordError> {
        let mut shard = self.shard(id);
        let entry = shard.live(now, owner, id)?;
        if entry.calls >= rules.calls {
            return Err(RecordError::CallLimit);
        }
        entry.calls += 1;
        Ok(entry.calls)
    }

    pub(crate) fn end(&self, now: u64, owner: &str, id: RecordId) -> Result<(), RecordError> {
        let mut shard = self.shard(id);
        shard.live(now, owner, id)?;
        let removed = usize::from(shard.remove(id));
        drop(shard);
        self.held.fetch_sub(removed, Relaxed);
        Ok(())
    }

    fn shard(&self, id: RecordId) -> MutexGuard<'_, Shard> {
        let number = usize::try_from(id.0 % SHARDS as u128).unwrap_or(0);
        self.shards[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of one session, if there is one.
    fn take_room(&self, most: usize) -> bool {
        self.held.fetch_update(Relaxed, Relaxed, |held| (held < most).then_some(held + 1)).is_ok()
    }

    fn remove_expired(&self, now: u64) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = shard.remove_expired(now, usize::MAX);
            drop(shard);
            self.held.fetch_sub(gone, Relaxed);
        }
    }
}

impl Shard {
    fn live(&mut self, now: u64, owner: &str, id: RecordId) -> Result<&mut Entry, RecordError> {
        let entry = self.by_id.get_mut(&id);
        entry
            .filter(|entry| entry.expires > now && *entry.owner == *owner)
            .ok_or(RecordError::NotFound)
    }

    fn remove(&mut self, id: RecordId) -> bool {
        let removed = self.by_id.remove(&id);
        removed.is_some_and(|entry| self.by_expiry.remove(&(entry.expires, id)))
    }

    /// Removes expired ones, at most so many; their number.
    fn remove_expired(&mut self, now: u64, most: usize) -> usize {
        let mut gone = 0;
        while gone < most
            && let Some(&(expires, id)) = self.by_expiry.first()
            && expires <= now
        {
            self.remove(id);
            gone += 1;
        }
        gone
    }
}

impl Entry {
    fn session(&self) -> Session {
        Session {
            created_at: self.created_at,
            expires_at: self.expires_at,
            calls: self.calls,
            metadata: Bytes::copy_from_slice(&self.metadata),
        }
    }
}
