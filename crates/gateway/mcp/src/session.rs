//! Sessions: those of MCP clients, and the limit on the calls of a session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// At a full table, expired sessions are looked for at most this often, in nanoseconds.
const SWEEP_PAUSE: u64 = 100_000_000;

/// Why a session does not take a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There never was such a session, it has ended or expired, or it is another owner's.
    #[error("there is no such session: it ended, expired, or never was")]
    NotFound,
    /// It has had all its calls.
    #[error("the session has had all its {0} calls")]
    LimitReached(u32),
}

/// The sessions of MCP clients, in the memory of this process: bounded in number, ended by the
/// client or when they were idle. One takes some 100 bytes.
#[derive(Debug)]
pub struct Sessions(Mutex<Inner>);

/// The bounds of [`Sessions`].
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Most sessions at once.
    pub sessions: usize,
    /// Nanoseconds without a request after which a session ends.
    pub idle: u64,
    /// Most calls of one session.
    pub calls: u32,
}

#[derive(Debug)]
struct Inner {
    limits: SessionLimits,
    swept: u64,
    by_id: HashMap<u128, Session>,
}

#[derive(Debug)]
struct Session {
    owner: Box<str>,
    version: &'static str,
    last_used: u64,
    calls: u32,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(limits: SessionLimits) -> Self {
        Self(Mutex::new(Inner { limits, swept: 0, by_id: HashMap::new() }))
    }

    /// Sets other bounds. They hold for the sessions that are open, too; where these are too many,
    /// none is opened until enough of them have ended.
    pub fn set_limits(&self, limits: SessionLimits) {
        self.inner().limits = limits;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session of `owner` with a random number, and returns its id; `None` if there are too
    /// many. `now` is monotonic here and below, in nanoseconds.
    pub fn open(
        &self,
        random: u128,
        owner: &str,
        version: &'static str,
        now: u64,
    ) -> Option<String> {
        let mut inner = self.inner();
        let SessionLimits { sessions, idle, .. } = inner.limits;
        if inner.by_id.len() >= sessions && now >= inner.swept.saturating_add(SWEEP_PAUSE) {
            inner.swept = now;
            inner.by_id.retain(|_, session| !session.has_expired(now, idle));
        }
        if inner.by_id.len() >= sessions {
            return None;
        }
        let session = Session { owner: Box::from(owner), version, last_used: now, calls: 0 };
        inner.by_id.insert(random, session);
        Some(format!("{random:032x}"))
    }

    /// The version of an open session of this owner, which is used now.
    pub fn version(&self, id: &str, owner: &str, now: u64) -> Option<&'static str> {
        self.with(id, owner, now, |session, _| session.version)
    }

    /// Ends a session; whether it was open.
    pub fn close(&self, id: &str, owner: &str, now: u64) -> bool {
        let is_open = self.version(id, owner, now).is_some();
        is_open && read_id(id).is_some_and(|id| self.inner().by_id.remove(&id).is_some())
    }

    /// The number of sessions that are open, or have expired since the last look.
    pub fn count(&self) -> usize {
        self.inner().by_id.len()
    }

    /// Uses an open session of this owner; `act` is told the most calls of a session.
    fn with<T>(
        &self,
        id: &str,
        owner: &str,
        now: u64,
        act: impl FnOnce(&mut Session, u32) -> T,
    ) -> Option<T> {
        let id = read_id(id)?;
        let mut inner = self.inner();
        let SessionLimits { idle, calls, .. } = inner.limits;
        let session = inner.by_id.get_mut(&id)?;
        if session.has_expired(now, idle) {
            inner.by_id.remove(&id);
            return None;
        }
        if *session.owner != *owner {
            return None;
        }
        session.last_used = now;
        Some(act(session, calls))
    }

    /// Counts one more call of an open session of this owner, and returns how many are left after
    /// it.
    ///
    /// # Errors
    /// The call must not be made; then none is counted.
    pub fn count_call(&self, id: &str, owner: &str, now: u64) -> Result<u32, SessionError> {
        let counted = self.with(id, owner, now, |session, most| {
            let left = most.checked_sub(session.calls + 1).ok_or(SessionError::LimitReached(most));
            session.calls += u32::from(left.is_ok());
            left
        });
        counted.unwrap_or(Err(SessionError::NotFound))
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

    fn limits(sessions: usize, calls: u32) -> SessionLimits {
        SessionLimits { sessions, idle: 100, calls }
    }

    #[test]
    fn a_session_is_its_owners_until_it_ends() {
        let sessions = Sessions::new(limits(10, 20));
        let id = sessions.open(1, "a", "v", 0).unwrap();
        assert_eq!((id.len(), sessions.version(&id, "a", 1)), (32, Some("v")));
        for (other, owner) in [(&*id, "b"), (&*id, ""), (&id[1..], "a"), ("", "a")] {
            assert_eq!(sessions.version(other, owner, 1), None, "{other} {owner}");
            assert!(!sessions.close(other, owner, 1));
        }
        assert_eq!(sessions.version(&id.to_uppercase(), "a", 1), Some("v"), "it has only digits");
        assert!(sessions.close(&id, "a", 2) && !sessions.close(&id, "a", 2));
        assert_eq!(sessions.count_call(&id, "a", 2), Err(SessionError::NotFound));
    }

    #[test]
    fn an_idle_session_expires_and_makes_room() {
        let sessions = Sessions::new(limits(1, 20));
        let id = sessions.open(0xabc, "a", "v", 0).unwrap();
        assert_eq!(sessions.version(&id.to_uppercase(), "a", 1), None, "another spelling");
        assert!(sessions.open(2, "a", "v", 50).is_none(), "full");
        assert_eq!(sessions.version(&id, "a", 90), Some("v"));
        assert_eq!(sessions.version(&id, "a", 190), Some("v"), "it was used at 90");
        assert_eq!(sessions.version(&id, "a", 291), None);
        let id = sessions.open(3, "a", "v", 300).unwrap();
        assert!(sessions.open(4, "a", "v", SWEEP_PAUSE + 300).is_some());
        assert_eq!((sessions.version(&id, "a", SWEEP_PAUSE + 300), sessions.count()), (None, 1));
    }

    #[test]
    fn a_session_has_its_calls_and_no_more() {
        let sessions = Sessions::new(limits(10, 2));
        let id = sessions.open(1, "a", "v", 0).unwrap();
        assert_eq!(sessions.count_call(&id, "b", 0), Err(SessionError::NotFound));
        let counts: Vec<_> = (0..4).map(|_| sessions.count_call(&id, "a", 0)).collect();
        let refused = Err(SessionError::LimitReached(2));
        assert_eq!(counts, [Ok(1), Ok(0), refused.clone(), refused]);
    }

    #[test]
    fn new_limits_hold_for_open_sessions_too() {
        let sessions = Sessions::new(limits(2, 2));
        let id = sessions.open(1, "a", "v", 0).unwrap();
        assert_eq!(sessions.count_call(&id, "a", 0), Ok(1));
        sessions.set_limits(SessionLimits { sessions: 1, idle: 1_000, calls: 3 });
        assert!(sessions.open(2, "a", "v", 0).is_none(), "there is room for one");
        assert_eq!(sessions.count_call(&id, "a", 500), Ok(1), "it lives longer, and has one more");
        sessions.set_limits(SessionLimits { sessions: 2, idle: 10, calls: 1 });
        assert!(sessions.open(2, "a", "v", 500).is_some());
        assert_eq!(sessions.count_call(&id, "a", 505), Err(SessionError::LimitReached(1)));
        assert_eq!(sessions.count_call(&id, "a", 516), Err(SessionError::NotFound), "expired");
    }
}
