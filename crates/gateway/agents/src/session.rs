//! Sessions: those of MCP clients, and the limit on the calls of a session.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// At a full table, expired sessions are looked for at most this often, in nanoseconds.
const SWEEP_PAUSE: u64 = 100_000_000;

/// Why a session does not take a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There never was such a session, it has ended or expired, or it is another tenant's.
    #[error("there is no such session: it ended, expired, or never was")]
    NotFound,
    /// It has had all its calls.
    #[error("the session has had all its {0} calls")]
    LimitReached(u32),
    /// Nobody knows: the store does not answer.
    #[error("the store of the sessions does not answer")]
    Unavailable,
}

/// Counts the calls of sessions.
pub trait CallCounter {
    /// Counts one more call of a session of this tenant, and returns how many are left after it.
    /// `now` is monotonic, in nanoseconds.
    ///
    /// # Errors
    /// The call must not be made; then none is counted.
    fn check_and_count(
        &self,
        session: &str,
        tenant: &str,
        now: u64,
    ) -> impl Future<Output = Result<u32, SessionError>>;
}

/// The sessions of MCP clients, in the memory of this process: bounded in number, ended by the
/// client or when they were idle. One takes some 100 bytes.
#[derive(Debug)]
pub struct Sessions {
    limits: Limits,
    inner: Mutex<Inner>,
}

/// The bounds of [`Sessions`].
#[derive(Clone, Copy, Debug)]
struct Limits {
    sessions: usize,
    idle: u64,
    calls: u32,
}

#[derive(Debug, Default)]
struct Inner {
    swept: u64,
    by_id: HashMap<u128, Session>,
}

#[derive(Debug)]
struct Session {
    tenant: Arc<str>,
    version: &'static str,
    last_used: u64,
    calls: u32,
}

impl Sessions {
    /// At most `sessions` at once, each ended after `idle` nanoseconds without a request, each
    /// with at most `calls` calls.
    pub fn new(sessions: usize, idle: u64, calls: u32) -> Self {
        Self { limits: Limits { sessions, idle, calls }, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session with a random number, and returns its id; `None` if there are too many.
    pub fn open(
        &self,
        random: u128,
        tenant: &Arc<str>,
        version: &'static str,
        now: u64,
    ) -> Option<String> {
        let mut inner = self.inner();
        let idle = self.limits.idle;
        let full = inner.by_id.len() >= self.limits.sessions;
        if full && now >= inner.swept.saturating_add(SWEEP_PAUSE) {
            inner.swept = now;
            inner.by_id.retain(|_, session| !session.has_expired(now, idle));
        }
        if inner.by_id.len() >= self.limits.sessions {
            return None;
        }
        let session = Session { tenant: Arc::clone(tenant), version, last_used: now, calls: 0 };
        inner.by_id.insert(random, session);
        Some(format!("{random:032x}"))
    }

    /// The version of an open session of this tenant, which is used now.
    pub fn version(&self, id: &str, tenant: &str, now: u64) -> Option<&'static str> {
        self.with(id, tenant, now, |session| session.version)
    }

    /// Ends a session; whether it was open.
    pub fn close(&self, id: &str, tenant: &str, now: u64) -> bool {
        let is_open = self.version(id, tenant, now).is_some();
        is_open && read_id(id).is_some_and(|id| self.inner().by_id.remove(&id).is_some())
    }

    /// The number of sessions that are open, or have expired since the last look.
    pub fn count(&self) -> usize {
        self.inner().by_id.len()
    }

    /// Uses an open session of this tenant.
    fn with<T>(
        &self,
        id: &str,
        tenant: &str,
        now: u64,
        act: impl FnOnce(&mut Session) -> T,
    ) -> Option<T> {
        let id = read_id(id)?;
        let mut inner = self.inner();
        let session = inner.by_id.get_mut(&id)?;
        if session.has_expired(now, self.limits.idle) {
            inner.by_id.remove(&id);
            return None;
        }
        if *session.tenant != *tenant {
            return None;
        }
        session.last_used = now;
        Some(act(session))
    }

    fn count_call(&self, id: &str, tenant: &str, now: u64) -> Result<u32, SessionError> {
        let most = self.limits.calls;
        let counted = self.with(id, tenant, now, |session| {
            let left = most.checked_sub(session.calls + 1);
            session.calls += u32::from(left.is_some());
            left
        });
        counted.ok_or(SessionError::NotFound)?.ok_or(SessionError::LimitReached(most))
    }
}

impl CallCounter for Sessions {
    fn check_and_count(
        &self,
        session: &str,
        tenant: &str,
        now: u64,
    ) -> impl Future<Output = Result<u32, SessionError>> {
        ready(self.count_call(session, tenant, now))
    }
}

impl Session {
    const fn has_expired(&self, now: u64, idle: u64) -> bool {
        now.saturating_sub(self.last_used) > idle
    }
}

/// Reads an id that [`Sessions::open`] wrote.
fn read_id(text: &str) -> Option<u128> {
    let is_own = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_own.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant() -> Arc<str> {
        Arc::from("a")
    }

    #[test]
    fn a_session_is_its_tenants_until_it_ends() {
        let sessions = Sessions::new(10, 100, 20);
        let id = sessions.open(1, &tenant(), "v", 0).unwrap();
        assert_eq!((id.len(), sessions.version(&id, "a", 1)), (32, Some("v")));
        for (other, tenant) in [(&*id, "b"), (&*id, ""), (&id[1..], "a"), ("", "a")] {
            assert_eq!(sessions.version(other, tenant, 1), None, "{other} {tenant}");
            assert!(!sessions.close(other, tenant, 1));
        }
        assert_eq!(sessions.version(&id.to_uppercase(), "a", 1), Some("v"), "it has only digits");
        assert!(sessions.close(&id, "a", 2) && !sessions.close(&id, "a", 2));
        assert_eq!(sessions.count_call(&id, "a", 2), Err(SessionError::NotFound));
    }

    #[test]
    fn an_idle_session_expires_and_makes_room() {
        let sessions = Sessions::new(1, 100, 20);
        let id = sessions.open(0xabc, &tenant(), "v", 0).unwrap();
        assert_eq!(sessions.version(&id.to_uppercase(), "a", 1), None, "another spelling");
        assert!(sessions.open(2, &tenant(), "v", 50).is_none(), "full");
        assert_eq!(sessions.version(&id, "a", 90), Some("v"));
        assert_eq!(sessions.version(&id, "a", 190), Some("v"), "it was used at 90");
        assert_eq!(sessions.version(&id, "a", 291), None);
        let id = sessions.open(3, &tenant(), "v", 300).unwrap();
        assert!(sessions.open(4, &tenant(), "v", SWEEP_PAUSE + 300).is_some());
        assert_eq!((sessions.version(&id, "a", SWEEP_PAUSE + 300), sessions.count()), (None, 1));
    }

    #[test]
    fn a_session_has_its_calls_and_no_more() {
        let sessions = Sessions::new(10, 100, 2);
        let id = sessions.open(1, &tenant(), "v", 0).unwrap();
        assert_eq!(sessions.count_call(&id, "b", 0), Err(SessionError::NotFound));
        let counts: Vec<_> = (0..4).map(|_| sessions.count_call(&id, "a", 0)).collect();
        let refused = Err(SessionError::LimitReached(2));
        assert_eq!(counts, [Ok(1), Ok(0), refused.clone(), refused]);
    }
}
