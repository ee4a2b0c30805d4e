//! One server of an upstream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hyper::header::HeaderValue;

use super::breaker::Breaker;
use crate::spec::UpstreamSpec;
use crate::unit::Span;

/// One server of an upstream, with what is known of it by all workers.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `HOST:PORT`.
    pub(crate) address: Arc<str>,
    pub(crate) host: HeaderValue,
    pub(crate) connect_timeout: Span,
    /// By the active checks.
    healthy: AtomicBool,
    breaker: Option<Breaker>,
    active: AtomicUsize,
}

impl Endpoint {
    pub(super) fn new(address: &str, spec: &UpstreamSpec) -> Result<Self, String> {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            return Err(format!("`{address}` is no HOST:PORT"));
        }
        Ok(Self {
            address: Arc::from(address),
            host: super::host(address)?,
            connect_timeout: spec.connect_timeout,
            healthy: AtomicBool::new(true),
            breaker: spec.breaker.map(Breaker::new),
            active: AtomicUsize::new(0),
        })
    }

    /// Would it be given a request? Asking changes nothing.
    pub(crate) fn is_fit(&self, now: u64) -> bool {
        self.is_healthy() && self.breaker.as_ref().is_none_or(|breaker| breaker.is_passable(now))
    }

    /// Is it given a request? An open breaker lets one through to try when its time is over.
    pub(super) fn admits(&self, now: u64) -> bool {
        self.is_healthy() && self.breaker.as_ref().is_none_or(|breaker| breaker.admits(now))
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    pub(super) fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// What came of a request.
    pub(crate) fn learn(&self, good: bool, now: u64) {
        if let Some(breaker) = &self.breaker {
            breaker.learn(good, now);
        }
    }

    /// Requests under way.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }
}

/// A request under way at an endpoint, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Active(Arc<Endpoint>);

impl Active {
    pub(crate) fn at(endpoint: &Arc<Endpoint>) -> Self {
        endpoint.active.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(endpoint))
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.0
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}
