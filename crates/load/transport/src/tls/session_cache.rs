//! A cache of TLS sessions for resumption.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

/// Maximum number of tickets per target. A ticket is used once (RFC 8446, appendix C.4), and every
/// connection receives one or two. The cache of rustls keeps 8, so that of 64 connections opened at
/// once most could not resume.
const MAX_TICKETS: usize = 1_024;

/// The session cache of one worker. No other thread uses it, so its lock is never contended.
#[derive(Default)]
pub(super) struct SessionCache(Mutex<HashMap<ServerName<'static>, Server>>);

/// Sessions of one target.
#[derive(Default)]
struct Server {
    group: Option<NamedGroup>,
    /// TLS 1.2: one session, which can be resumed many times.
    session: Option<Tls12ClientSessionValue>,
    /// TLS 1.3: tickets, the newest last.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl SessionCache {
    /// Resumption with a new, empty cache.
    pub(super) fn resumption() -> Resumption {
        Resumption::store(Arc::new(Self::default()))
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Server>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, name: ServerName<'static>, update: impl FnOnce(&mut Server)) {
        update(self.servers().entry(name).or_default());
    }
}

/// Hides the content, because sessions are secrets.
impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache").finish_non_exhaustive()
    }
}

impl ClientSessionStore for SessionCache {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.update(name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.servers().get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.update(name, |server| server.session = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.servers().get(name)?.session.clone()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.update(name.clone(), |server| server.session = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.update(name, |server| {
            if server.tickets.len() >= MAX_TICKETS {
                server.tickets.pop_front();
            }
            server.tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.servers().get_mut(name)?.tickets.pop_back()
    }
}
