//! Looks up a target's host in DNS, and caches the addresses.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use plimsoll_measure::{Clock, ErrorClass, Moment, Nanos};
use tokio::sync::watch;

use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// Time for which addresses are cached. Long enough that a burst of new connections needs one
/// lookup, and short enough to follow a target whose address changes.
const CACHE_TTL: Nanos = Nanos::from_secs(30);

/// Time for which a failure is cached, so that an unresolvable name is not looked up for every
/// request.
const FAILURE_TTL: Nanos = Nanos::from_secs(1);

/// Result of a lookup.
type Answer = Result<Vec<SocketAddr>, String>;

/// The system's blocking lookup of a host and port.
type Lookup = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Resolves the host of one endpoint.
#[derive(Debug)]
pub(crate) struct Resolver {
    lookup: Lookup,
    cached: RefCell<Option<(Moment, Answer)>>,
    /// The lookup in progress, for which all connections wait. A cancelled connection does not end
    /// it.
    pending: RefCell<Option<watch::Receiver<Option<Answer>>>>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::with(|host, port| (host, port).to_socket_addrs().map(Iterator::collect))
    }
}

impl Resolver {
    fn with(lookup: Lookup) -> Self {
        Self { lookup, cached: RefCell::default(), pending: RefCell::default() }
    }

    /// The addresses, and the duration of the lookup if one was needed. Fails if `limit` expires.
    pub(crate) async fn resolve<C: Clock>(
        &self,
        clock: &C,
        endpoint: &Endpoint,
        limit: Nanos,
    ) -> Result<(Vec<SocketAddr>, Option<Nanos>), Failure> {
        if let Ok(address) = endpoint.host().parse::<IpAddr>() {
            return Ok((vec![SocketAddr::new(address, endpoint.port())], None));
        }
        let started = clock.now();
        if let Some(answer) = self.cached(started) {
            return answer.map(|addresses| (addresses, None)).map_err(failure);
        }
        let mut pending = self.join_lookup(endpoint)?;
        let answer = tokio::time::timeout(limit.to_duration(), pending.wait_for(Option::is_some));
        let host = endpoint.host();
        let answer = match answer.await {
            Err(_) => return Err(failure(format!("no DNS answer for `{host}` within {limit}"))),
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Ok(Vec::new())),
            Ok(Err(_)) => Err(format!("the lookup of `{host}` was aborted")),
        };
        let answer = match answer {
            Ok(addresses) if addresses.is_empty() => Err(format!("`{host}` has no address")),
            answer => answer,
        };
        let now = clock.now();
        self.pending.replace(None);
        self.cached.replace(Some((now, answer.clone())));
        answer.map(|addresses| (addresses, Some(now.since(started)))).map_err(failure)
    }

    /// The recent result, if there is one.
    fn cached(&self, now: Moment) -> Option<Answer> {
        let cached = self.cached.borrow();
        let (at, answer) = cached.as_ref()?;
        let valid = if answer.is_ok() { CACHE_TTL } else { FAILURE_TTL };
        (now.since(*at) < valid).then(|| answer.clone())
    }

    /// Joins the lookup in progress, or starts one. It has its own thread, which does not block the
    /// end of the run, because the system's lookup cannot be cancelled and may take half a minute.
    fn join_lookup(&self, endpoint: &Endpoint) -> Result<watch::Receiver<Option<Answer>>, Failure> {
        if let Some(pending) = &*self.pending.borrow() {
            return Ok(pending.clone());
        }
        let (sender, receiver) = watch::channel(None);
        let (lookup, host, port) = (self.lookup, endpoint.host().to_owned(), endpoint.port());
        std::thread::Builder::new()
            .name("plimsoll-dns".to_owned())
            .spawn(move || {
                let answer = lookup(&host, port).map_err(|error| error.to_string());
                // The receivers may all be gone.
                let _ = sender.send(Some(answer));
            })
            .map_err(|error| Failure::new(ErrorClass::LocalIo, error.to_string()))?;
        self.pending.replace(Some(receiver.clone()));
        Ok(receiver)
    }
}

fn failure(detail: String) -> Failure {
    Failure::new(ErrorClass::Dns, detail)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Condvar, Mutex};

    use plimsoll_measure::MonotonicClock;

    use super::*;

    /// A server that does not respond until it is released.
    static RELEASED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    static ASKED: AtomicU32 = AtomicU32::new(0);

    #[expect(clippy::unnecessary_wraps, reason = "the signature of a look-up")]
    fn dead(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        ASKED.fetch_add(1, Ordering::SeqCst);
        let released = RELEASED.0.lock().unwrap();
        drop(RELEASED.1.wait_while(released, |released| !*released).unwrap());
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))])
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_dead_server_is_asked_once_and_nothing_waits_for_it_longer_than_the_limit() {
        let (clock, endpoint) =
            (MonotonicClock::start(), Endpoint::new("name.invalid".to_owned(), 80));
        let resolver = Resolver::with(dead);
        let limit = Nanos::from_millis(20);
        let resolve = || resolver.resolve(&clock, &endpoint, limit);
        let own = runtime();
        let all = own.block_on(async { tokio::join!(resolve(), resolve(), resolve()) });
        for result in [all.0, all.1, all.2] {
            let failure = result.unwrap_err();
            assert_eq!(failure.class, ErrorClass::Dns);
            assert!(failure.detail.contains("within 20ms"), "{}", failure.detail);
        }
        // The runtime must end without waiting for the lookup; otherwise this test hangs.
        drop(own);
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
        *RELEASED.0.lock().unwrap() = true;
        RELEASED.1.notify_all();
        let late = runtime().block_on(resolver.resolve(&clock, &endpoint, Nanos::from_secs(20)));
        assert_eq!(late.unwrap().0, [SocketAddr::from(([127, 0, 0, 1], 80))]);
        assert_eq!(ASKED.load(Ordering::SeqCst), 1, "it was the same look-up");
    }

    static REFUSED: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_failure_is_kept_for_a_moment() {
        let clock = plimsoll_measure::ManualClock::default();
        let endpoint = Endpoint::new("name.invalid".to_owned(), 80);
        let resolver = Resolver::with(|_, _| {
            REFUSED.fetch_add(1, Ordering::SeqCst);
            Err(io::Error::other("no such host"))
        });
        let own = runtime();
        let ask = || own.block_on(resolver.resolve(&clock, &endpoint, Nanos::from_secs(20)));
        assert_eq!(ask().unwrap_err().detail, "no such host");
        assert_eq!(ask().unwrap_err().detail, "no such host");
        assert_eq!(REFUSED.load(Ordering::SeqCst), 1);
        clock.advance(FAILURE_TTL);
        assert!(ask().is_err());
        assert_eq!(REFUSED.load(Ordering::SeqCst), 2);
    }
}
