//! Sessions that later handshakes may resume.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

/// Tickets that are kept for one target. A ticket is used once (RFC 8446, appendix C.4), and every connection brings
/// one or two: rustls' own store keeps 8 of them, so that of 64 connections that are opened at once most could not
/// be resumed for the client's reason, not the target's.
const TICKETS: usize = 1_024;

/// The memory of one worker: of no use to anybody else, so that its lock is never waited for.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<ServerName<'static>, Server>>);

/// What is known of one target.
#[derive(Default)]
struct Server {
    group: Option<NamedGroup>,
    /// TLS 1.2: one session, as often as wanted.
    session: Option<Tls12ClientSessionValue>,
    /// TLS 1.3: the newest at the end.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    /// Resumption from a new and empty memory.
    pub(super) fn resumption() -> Resumption {
        Resumption::store(Arc::new(Self::default()))
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Server>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, name: ServerName<'static>, change: impl FnOnce(&mut Server)) {
        change(self.servers().entry(name).or_default());
    }
}

/// Shows nothing: sessions are secrets.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.change(name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.servers().get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.change(name, |server| server.session = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.servers().get(name)?.session.clone()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.change(name.clone(), |server| server.session = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.change(name, |server| {
            if server.tickets.len() >= TICKETS {
                server.tickets.pop_front();
            }
            server.tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.servers().get_mut(name)?.tickets.pop_back()
    }
}
