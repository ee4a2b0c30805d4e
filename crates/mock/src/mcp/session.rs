//! The sessions of MCP clients: limited in number, ended by the client or by a timeout.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::stop::Stop;
use crate::token::{self, Token};

/// Shortest time in nanoseconds between two sweeps of expired sessions in a full store.
const SWEEP_PAUSE: u64 = 100_000_000;

/// All open sessions. Each takes at most 150 bytes: 65 in a table that is at least 7/16 full. A
/// call in flight takes about 200 bytes.
#[derive(Debug)]
pub(crate) struct Sessions {
    clock: Clock,
    /// Makes the ids of this mock differ from those of earlier processes.
    secret: u64,
    limit: usize,
    /// Nanoseconds without a request until a session expires.
    timeout: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    opened: u64,
    swept: u64,
    by_id: HashMap<Token, Session>,
}

#[derive(Debug)]
struct Session {
    version: &'static str,
    last_used: u64,
    calls: Vec<(String, oneshot::Sender<()>)>,
}

impl Sessions {
    pub(crate) fn new(clock: Clock, limit: usize, timeout: u64) -> Self {
        let secret = clock.unix(clock.now());
        Self { clock, secret, limit, timeout, inner: Mutex::default() }
    }

    /// Opens a session; `None` if there are too many.
    pub(crate) fn open(&self, version: &'static str) -> Option<Token> {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        let full = inner.by_id.len() >= self.limit;
        if full && now >= inner.swept.saturating_add(SWEEP_PAUSE) {
            inner.swept = now;
            inner.by_id.retain(|_, session| !self.has_expired(session, now));
        }
        if inner.by_id.len() >= self.limit {
            return None;
        }
        inner.opened += 1;
        let id = token::make(self.secret, inner.opened);
        inner.by_id.insert(id, Session { version, last_used: now, calls: Vec::new() });
        Some(id)
    }

    fn has_expired(&self, session: &Session, now: u64) -> bool {
        session.calls.is_empty() && now.saturating_sub(session.last_used) > self.timeout
    }

    /// Marks an open session as used; returns its version.
    pub(crate) fn touch(&self, id: Token) -> Option<&'static str> {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        let session = inner.by_id.get_mut(&id)?;
        if self.has_expired(session, now) {
            inner.by_id.remove(&id);
            return None;
        }
        session.last_used = now;
        Some(session.version)
    }

    /// Ends a session and its calls; returns whether it was open.
    pub(crate) fn close(&self, id: Token) -> bool {
        self.touch(id).is_some() && self.inner.lock().by_id.remove(&id).is_some()
    }

    /// Starts a cancellable call; `None` if the session has ended or has a call with this id.
    pub(crate) fn begin_call(self: &Arc<Self>, session: Token, call: &Value) -> Option<Stop> {
        let call = call.to_string();
        let mut inner = self.inner.lock();
        let found = inner.by_id.get_mut(&session)?;
        if found.calls.iter().any(|(known, _)| *known == call) {
            return None;
        }
        let (sender, stopped) = oneshot::channel();
        found.calls.push((call.clone(), sender));
        let sessions = Arc::clone(self);
        Some(Stop::new(stopped, move || sessions.remove(session, &call)))
    }

    /// Cancels a call in flight.
    pub(crate) fn cancel(&self, session: Token, call: &Value) {
        self.remove(session, &call.to_string());
    }

    fn remove(&self, session: Token, call: &str) {
        let now = self.clock.now();
        if let Some(session) = self.inner.lock().by_id.get_mut(&session) {
            session.calls.retain(|(known, _)| known != call);
            session.last_used = now;
            if session.calls.is_empty() {
                session.calls = Vec::new();
            }
        }
    }

    /// Open sessions, including expired ones since the last sweep.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.inner.lock().by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    fn sessions(limit: usize, timeout: u64) -> Arc<Sessions> {
        Arc::new(Sessions::new(Clock::start(), limit, timeout))
    }

    fn is_stopped(stop: &mut Stop) -> bool {
        stop.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_session_is_known_until_it_is_closed() {
        let sessions = sessions(10, u64::MAX);
        let (one, two) = (sessions.open("a").unwrap(), sessions.open("b").unwrap());
        assert_ne!(one, two);
        assert_eq!((sessions.touch(one), sessions.touch(two)), (Some("a"), Some("b")));
        assert!(sessions.close(one) && !sessions.close(one));
        assert_eq!((sessions.touch(one), sessions.touch(two)), (None, Some("b")));
    }

    #[test]
    fn a_full_store_refuses_until_sessions_end_or_expire() {
        let full = sessions(2, u64::MAX);
        let first = full.open("a").unwrap();
        assert!(full.open("a").is_some() && full.open("a").is_none());
        assert!(full.close(first) && full.open("a").is_some());
        // With a timeout of 0 ns every idle session has expired, but not one with a call.
        let expiring = sessions(1, 0);
        let first = expiring.open("a").unwrap();
        let call = expiring.begin_call(first, &Value::from(1)).unwrap();
        assert_eq!(expiring.touch(first), Some("a"));
        drop(call);
        std::thread::yield_now();
        assert_eq!((expiring.touch(first), expiring.len()), (None, 0));
    }

    #[test]
    fn calls_stop_when_they_are_cancelled_or_their_session_ends() {
        let sessions = sessions(10, u64::MAX);
        let session = sessions.open("a").unwrap();
        let begin = |id: Value| sessions.begin_call(session, &id);
        // The number and the text are two ids.
        let (mut number, mut text) = (begin(1.into()).unwrap(), begin("1".into()).unwrap());
        assert!(begin(1.into()).is_none());
        sessions.cancel(session, &1.into());
        assert!(is_stopped(&mut number) && !is_stopped(&mut text));
        // The id is free again, and the end of the first call does not stop the second.
        let mut again = begin(1.into()).unwrap();
        drop(number);
        assert!(!is_stopped(&mut again));
        assert!(sessions.close(session));
        assert!(is_stopped(&mut again) && is_stopped(&mut text));
        assert!(begin(9.into()).is_none());
    }
}
