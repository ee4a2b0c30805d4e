//! Sessions in memory.

use crate::record::check_size;
use crate::session::{millis, nanos};
use crate::{Moment, NewSession, RecordError, RecordId, Session, SessionRules};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};

/// Expired sessions removed per insertion, to bound the time of an operation.
const FEW: usize = 8;

/// All sessions of a process, shared by its workers.
///
/// New sessions remove expired ones: a few each time, and all when the table is full. Live ones are
/// never evicted.
#[derive(Debug, Default)]
pub(crate) struct SessionTable(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<RecordId, Entry>,
    by_expiry: BTreeSet<(u64, RecordId)>,
    /// Number of sessions by owner.
    owners: HashMap<Box<str>, usize>,
}

/// A stored session. Its bytes are copied, so that they do not keep a larger buffer alive.
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

impl SessionTable {
    pub(crate) fn create(
        &self,
        at: Moment,
        rules: &SessionRules,
        new: &NewSession<'_>,
    ) -> Result<Session, RecordError> {
        check_size(new.metadata.len(), rules.metadata_bytes)?;
        let mut table = self.0.lock();
        table.remove_expired(at.now, FEW);
        if table.is_full(rules, new) {
            table.remove_expired(at.now, usize::MAX);
        }
        if table.is_full(rules, new) {
            return Err(RecordError::Full);
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
        table.remove(new.id);
        table.by_expiry.insert((entry.expires, new.id));
        *table.owners.entry(entry.owner.clone()).or_default() += 1;
        table.by_id.insert(new.id, entry);
        Ok(session)
    }

    pub(crate) fn get(&self, now: u64, owner: &str, id: RecordId) -> Result<Session, RecordError> {
        self.0.lock().live(now, owner, id).map(|entry| entry.session())
    }

    /// Counts a tool call; returns the new number of calls.
    pub(crate) fn count_call(
        &self,
        now: u64,
        rules: &SessionRules,
        owner: &str,
        id: RecordId,
    ) -> Result<u32, RecordError> {
        let mut table = self.0.lock();
        let entry = table.live(now, owner, id)?;
        if entry.calls >= rules.calls {
            return Err(RecordError::CallLimit);
        }
        entry.calls += 1;
        Ok(entry.calls)
    }

    pub(crate) fn end(&self, now: u64, owner: &str, id: RecordId) -> Result<(), RecordError> {
        let mut table = self.0.lock();
        table.live(now, owner, id)?;
        table.remove(id);
        Ok(())
    }
}

impl Table {
    fn live(&mut self, now: u64, owner: &str, id: RecordId) -> Result<&mut Entry, RecordError> {
        let entry = self.by_id.get_mut(&id);
        entry
            .filter(|entry| entry.expires > now && *entry.owner == *owner)
            .ok_or(RecordError::NotFound)
    }

    /// Whether the table is full, in total or for this owner.
    fn is_full(&self, rules: &SessionRules, new: &NewSession<'_>) -> bool {
        let own = self.owners.get(new.owner).copied().unwrap_or_default();
        self.by_id.len() >= rules.sessions || own >= new.most
    }

    fn remove(&mut self, id: RecordId) {
        let Some(entry) = self.by_id.remove(&id) else { return };
        self.by_expiry.remove(&(entry.expires, id));
        if let Some(own) = self.owners.get_mut(&entry.owner) {
            *own -= 1;
            if *own == 0 {
                self.owners.remove(&entry.owner);
            }
        }
    }

    /// Removes expired sessions, up to a number.
    fn remove_expired(&mut self, now: u64, most: usize) {
        for _ in 0..most {
            match self.by_expiry.first() {
                Some(&(expires, id)) if expires <= now => self.remove(id),
                _ => return,
            }
        }
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
