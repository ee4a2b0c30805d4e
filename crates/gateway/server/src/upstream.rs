//! The servers behind the gateway: which one gets a request, and whether it is fit for one.

mod breaker;
mod check;
mod endpoint;
mod pool;
mod retry;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::header::HeaderValue;

pub(crate) use check::watch;
pub(crate) use endpoint::{Active, Endpoint};
pub(crate) use pool::{Fault, Link, Pool};
pub(crate) use retry::Retries;

use crate::spec::{Balance, DialectSpec, HealthSpec, RetrySpec, Secret, UpstreamSpec};
use crate::unit::Span;

/// Servers that do the same.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    pub(crate) dialect: DialectSpec,
    /// Sent instead of the client's key.
    pub(crate) key: Option<String>,
    pub(crate) timeout: Span,
    pub(crate) idle_timeout: Span,
    pub(crate) retry: Option<RetrySpec>,
    pub(crate) retries: Retries,
    pub(crate) health: Option<HealthSpec>,
    balance: Balance,
    next: AtomicUsize,
}

impl Upstream {
    /// # Errors
    /// In words, for what makes no sense.
    pub(crate) fn new(name: &str, spec: &UpstreamSpec) -> Result<Self, String> {
        if spec.addresses.is_empty() {
            return Err(format!("upstream `{name}` has no address: add `addresses: [HOST:PORT]`"));
        }
        let endpoint = |address: &String| Endpoint::new(address, spec).map(Arc::new);
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        Ok(Self {
            name: Arc::from(name),
            endpoints: spec.addresses.iter().map(endpoint).collect::<Result<_, _>>()?,
            dialect: spec.dialect,
            key: key.map_err(|variable| {
                format!("upstream `{name}`: the environment variable `{variable}` is not set")
            })?,
            timeout: spec.timeout,
            idle_timeout: spec.idle_timeout,
            retry: spec.retry,
            retries: Retries::new(spec.retry.map_or(0.0, |retry| retry.budget)),
            health: spec.health.clone(),
            balance: spec.balance,
            next: AtomicUsize::new(0),
        })
    }

    /// The address for a request; `None` when none is fit. `not` was tried before, and is taken only if
    /// there is no other.
    pub(crate) fn choose(&self, not: Option<&Arc<Endpoint>>, now: u64) -> Option<&Arc<Endpoint>> {
        if let [only] = self.endpoints.as_slice() {
            return only.admits(now).then_some(only);
        }
        let start = self.start();
        let (later, sooner) = self.endpoints.split_at(start);
        let fit = || sooner.iter().chain(later).filter(|endpoint| endpoint.is_fit(now));
        let other = |endpoint: &&Arc<Endpoint>| not.is_none_or(|not| !Arc::ptr_eq(not, endpoint));
        let chosen = if self.balance == Balance::LeastLoaded {
            fit().filter(other).min_by_key(|endpoint| endpoint.active())
        } else {
            fit().find(other)
        };
        chosen.or_else(|| fit().next()).filter(|endpoint| endpoint.admits(now))
    }

    fn start(&self) -> usize {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let draw = match self.balance {
            Balance::RoundRobin | Balance::LeastLoaded => turn,
            Balance::Random => {
                usize::try_from(crate::fault::scramble(turn as u64) >> 33).unwrap_or(turn)
            }
        };
        draw % self.endpoints.len()
    }
}

/// The value of the `host` header for an address.
fn host(address: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(address).map_err(|_| format!("`{address}` is no HOST:PORT"))
}
