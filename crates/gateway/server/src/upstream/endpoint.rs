//! One server of an upstream.

use std::cell::Cell;
use std::sync::Arc;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;

use super::breaker::{Admission, Breaker};
use crate::base::clock;
use crate::config::units::HumanDuration;
use crate::config::upstream::UpstreamSpec;

/// `HOST:PORT` of an `http` URL, with the default port if it has none. `None` for another scheme, a
/// user, or an invalid port, which must not become the default one.
pub(crate) fn address_of(url: &Uri) -> Option<String> {
    let authority = url.authority().filter(|_| url.scheme() == Some(&Scheme::HTTP))?;
    let host = authority.host();
    // User information precedes the host.
    let port = authority.as_str().strip_prefix(host)?;
    let port: u16 = if port.is_empty() { 80 } else { port.strip_prefix(':')?.parse().ok()? };
    Some(format!("{host}:{port}"))
}

/// One server of an upstream, with the state that all workers share.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `HOST:PORT`.
    pub(crate) address: Arc<str>,
    /// The value of the header `host`.
    pub(crate) host: HeaderValue,
    pub(crate) connect_timeout: HumanDuration,
    /// Nanoseconds that an idle connection to it is kept.
    pub(super) keep_alive: u64,
    /// Bytes of the buffer that responses are read into.
    pub(super) buffer: usize,
    breaker: Option<Breaker>,
}

impl Endpoint {
    /// `None` if the address is not `HOST:PORT`.
    pub(super) fn new(address: &str, spec: &UpstreamSpec) -> Option<Self> {
        let (name, port) = address.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        if port == 0 || name.is_empty() || name.contains(['@', '/']) {
            return None;
        }
        Some(Self {
            address: Arc::from(address),
            host: HeaderValue::from_str(address).ok()?,
            connect_timeout: spec.connect_timeout,
            keep_alive: spec.keep_alive.nanos(),
            buffer: usize::try_from(spec.buffer.0).unwrap_or(usize::MAX),
            breaker: spec.breaker.map(Breaker::new),
        })
    }

    /// Whether it would admit a request, without changing state.
    pub(crate) fn is_available(&self) -> bool {
        self.breaker.as_ref().is_none_or(|breaker| breaker.may_admit(clock::now()))
    }

    /// Whether it admits this request. After an open breaker's time it admits one as a trial.
    pub(super) fn admits(&self) -> Option<Admission> {
        self.breaker.as_ref().map_or(Some(Admission::Usual), |breaker| breaker.admits(clock::now()))
    }
}

/// An admitted request, in flight until it is dropped. If the client cancels it, no result is
/// recorded.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    pub(crate) endpoint: Arc<Endpoint>,
    /// The trial of a breaker, while undecided.
    admission: Cell<Admission>,
}

impl InFlightGuard {
    pub(super) fn new(endpoint: &Arc<Endpoint>, admission: Admission) -> Self {
        Self { endpoint: Arc::clone(endpoint), admission: Cell::new(admission) }
    }

    /// Reports the result of the request to the breaker.
    pub(crate) fn record(&self, success: bool) {
        self.admission.set(Admission::Usual);
        if let Some(breaker) = &self.endpoint.breaker {
            breaker.record(success, clock::now());
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let admission = self.admission.get();
        if admission != Admission::Usual
            && let Some(breaker) = &self.endpoint.breaker
        {
            breaker.undecided(admission, clock::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_an_address_or_nothing() {
        for (url, expected) in [
            ("http://127.0.0.1:9000/mcp", Some("127.0.0.1:9000")),
            ("http://tools", Some("tools:80")),
            ("http://[::1]/a?b=c", Some("[::1]:80")),
            ("http://[::1]:9000/", Some("[::1]:9000")),
            ("http://tools:65535/", Some("tools:65535")),
            ("http://tools:65536/", None),
            ("http://tools:99999/", None),
            ("http://tools:/", None),
            ("https://tools/mcp", None),
            ("http://joe:secret@tools/mcp", None),
            ("http://tools@tools/mcp", None),
            ("http://tools:80@tools:80/mcp", None),
            ("tools:9000", None),
            ("/mcp", None),
        ] {
            let found = url.parse().ok().and_then(|url| address_of(&url));
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }
}
