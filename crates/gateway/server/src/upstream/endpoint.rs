//! One server of an upstream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hyper::header::HeaderValue;

use super::breaker::Breaker;
use crate::spec::UpstreamSpec;
use crate::units::HumanDuration;

/// One server of an upstream, with the state that all workers share.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `HOST:PORT`.
    pub(crate) address: Arc<str>,
    /// The value of the header `host`.
    pub(crate) host: HeaderValue,
    pub(crate) connect_timeout: HumanDuration,
    /// According to the active health checks.
    healthy: AtomicBool,
    breaker: Option<Breaker>,
    in_flight: AtomicUsize,
}

impl Endpoint {
    /// `None` if the address is not `HOST:PORT`.
    pub(super) fn new(address: &str, spec: &UpstreamSpec) -> Option<Self> {
        let (name, port) = address.rsplit_once(':')?;
        let _: u16 = port.parse().ok()?;
        if name.is_empty() || name.contains(['@', '/']) {
            return None;
        }
        Some(Self {
            address: Arc::from(address),
            host: HeaderValue::from_str(address).ok()?,
            connect_timeout: spec.connect_timeout,
            healthy: AtomicBool::new(true),
            breaker: spec.breaker.map(Breaker::new),
            in_flight: AtomicUsize::new(0),
        })
    }

    /// Whether it may get a request. This changes no state.
    pub(crate) fn is_available(&self, now: u64) -> bool {
        self.is_healthy() && self.breaker.as_ref().is_none_or(|breaker| breaker.may_admit(now))
    }

    /// Whether it gets this request. When an open breaker's time is over, it admits one as a trial.
    pub(super) fn admits(&self, now: u64) -> bool {
        self.is_healthy() && self.breaker.as_ref().is_none_or(|breaker| breaker.admits(now))
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    pub(super) fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// Reports the result of a request to the breaker.
    pub(crate) fn record(&self, success: bool, now: u64) {
        if let Some(breaker) = &self.breaker {
            breaker.record(success, now);
        }
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// Counts a request as in flight at an endpoint, until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard(Arc<Endpoint>);

impl InFlightGuard {
    pub(crate) fn new(endpoint: &Arc<Endpoint>) -> Self {
        endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(endpoint))
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.0
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
