//! Agent loops and background runs in progress, and their memory by owner. Each owner gets a share
//! of `server.memory`, so that one caller cannot exhaust it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

use crate::base::memory::{MemoryBudget, MemoryReservation};
use crate::config::server::ServerSpec;
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::no_memory;
use crate::layers::identity::Identity;

/// The owners of such work, shared by all workers.
#[derive(Debug)]
pub(crate) struct Owners {
    memory: Arc<MemoryBudget>,
    /// Most bytes of one owner.
    share: AtomicUsize,
    table: Mutex<HashMap<Box<str>, Holdings>>,
}

/// The work in progress of one owner.
#[derive(Clone, Copy, Debug, Default)]
struct Holdings {
    works: usize,
    runs: usize,
    bytes: usize,
}

/// An agent loop, with its bytes until it is dropped.
#[derive(Debug)]
pub(crate) struct Work {
    owners: Arc<Owners>,
    owner: Box<str>,
    is_run: bool,
    held: MemoryReservation,
    bytes: usize,
}

/// Why a loop cannot reserve more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// Its owner's share is used up.
    Owner,
    /// The whole memory budget is used up.
    All,
}

/// The owner of a request's work: the tenant or consumer, or else the client's address.
pub(crate) fn owner_of(identity: &Identity, client: IpAddr) -> Box<str> {
    if identity.tenant.is_none() && identity.consumer.is_none() {
        return format!("a:{client}").into();
    }
    identity.owner().into()
}

/// The approximate memory of a JSON value: its texts, and a constant for each value.
pub(crate) fn value_bytes(value: &Value) -> usize {
    const NODE: usize = 48;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| NODE + name.len() + value_bytes(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

impl Owners {
    pub(crate) fn new(memory: &Arc<MemoryBudget>, spec: &ServerSpec) -> Arc<Self> {
        let owners = Self {
            memory: Arc::clone(memory),
            share: AtomicUsize::new(0),
            table: Mutex::default(),
        };
        owners.configure(spec);
        Arc::new(owners)
    }

    /// Sets a new share per owner.
    pub(crate) fn configure(&self, spec: &ServerSpec) {
        let share = spec.owner_memory.map_or(spec.memory.0 / 4, |share| share.0);
        self.share.store(usize::try_from(share).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Starts a loop without reserved memory.
    pub(crate) fn begin(self: &Arc<Self>, owner: Box<str>) -> Work {
        self.table.lock().entry(owner.clone()).or_default().works += 1;
        let held = self.memory.hold_nothing();
        Work { owners: Arc::clone(self), owner, is_run: false, held, bytes: 0 }
    }

    /// Like [`Self::begin`], for a run in the background; `None` if its owner has too many.
    pub(crate) fn begin_run(self: &Arc<Self>, owner: Box<str>, most: usize) -> Option<Work> {
        let mut work = self.begin(owner);
        let mut table = self.table.lock();
        let holdings = table.entry(work.owner.clone()).or_default();
        if holdings.runs >= most {
            drop(table);
            return None;
        }
        holdings.runs += 1;
        drop(table);
        work.is_run = true;
        Some(work)
    }
}

impl Work {
    /// Changes the reserved bytes.
    ///
    /// # Errors
    /// It would exceed the limit of the owner or of all owners; nothing changes.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let mut table = self.owners.table.lock();
        let holdings = table.entry(self.owner.clone()).or_default();
        let all = holdings.bytes - self.bytes + bytes;
        if bytes > self.bytes && all > self.owners.share.load(Ordering::Relaxed) {
            return Err(NoRoom::Owner);
        }
        if !self.held.resize(bytes) {
            return Err(NoRoom::All);
        }
        (holdings.bytes, self.bytes) = (all, bytes);
        Ok(())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut table = self.owners.table.lock();
        let Some(holdings) = table.get_mut(&self.owner) else { return };
        holdings.works -= 1;
        holdings.runs -= usize::from(self.is_run);
        holdings.bytes -= self.bytes;
        if holdings.works == 0 {
            table.remove(&self.owner);
        }
    }
}

impl From<NoRoom> for ErrorResponse {
    fn from(no_room: NoRoom) -> Self {
        match no_room {
            NoRoom::All => no_memory(),
            NoRoom::Owner => Self::owner_limit(
                "your chats and runs reached the memory limit of one caller (`server.owner_memory`)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::units::ByteSize;

    fn owners(share: u64) -> Arc<Owners> {
        let spec = ServerSpec {
            memory: ByteSize(1_000),
            owner_memory: Some(ByteSize(share)),
            ..ServerSpec::default()
        };
        Owners::new(&MemoryBudget::new(1_000), &spec)
    }

    #[test]
    fn an_owner_holds_no_more_than_its_share_and_all_no_more_than_there_is() {
        let owners = owners(600);
        let mut first = owners.begin("a".into());
        let mut second = owners.begin("a".into());
        let mut other = owners.begin("b".into());
        assert_eq!(first.resize(500), Ok(()));
        assert_eq!(second.resize(101), Err(NoRoom::Owner));
        assert_eq!(second.resize(100), Ok(()));
        assert_eq!(other.resize(401), Err(NoRoom::All), "600 of 1,000 are taken");
        assert_eq!(first.resize(100), Ok(()));
        assert_eq!(other.resize(401), Ok(()));
        drop(first);
        assert_eq!(second.resize(599), Ok(()));
        drop((second, other));
        assert_eq!((owners.memory.reserved(), owners.table.lock().len()), (0, 0));
    }

    #[test]
    fn an_owner_has_no_more_runs_than_allowed() {
        let owners = owners(600);
        let first = owners.begin_run("a".into(), 1).unwrap();
        assert!(owners.begin_run("a".into(), 1).is_none());
        assert!(owners.begin_run("b".into(), 1).is_some());
        drop(first);
        assert!(owners.begin_run("a".into(), 1).is_some());
        assert_eq!(owners.table.lock().len(), 0);
    }

    #[test]
    fn many_small_values_take_more_than_their_text() {
        let many = json!(vec![json!({"role": "user", "content": "a"}); 1_000]);
        assert!(value_bytes(&many) > 4 * many.to_string().len(), "{}", value_bytes(&many));
        let one = json!("a".repeat(100_000));
        assert!((100_000..110_000).contains(&value_bytes(&one)));
    }
}
