//! Upstreams: the servers behind the gateway, and the choice of a server for each request.

pub(crate) mod fair_queue;
pub(crate) mod proxy;

mod breaker;
mod connection;
mod endpoint;
mod pool;
mod retry_budget;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_gateway_dialect::{Dialect, LimitName};

pub(crate) use connection::{Broken, Received, UpstreamConn, UpstreamError};
pub(crate) use endpoint::{Endpoint, InFlightGuard, address_of};
pub(crate) use pool::Pool;
pub(crate) use retry_budget::RetryBudget;

use crate::config::secret::Secret;
use crate::config::units::HumanDuration;
use crate::config::upstream::{RetrySpec, UpstreamSpec};

/// The smallest read buffer that hyper allows.
const MIN_BUFFER: u64 = 8_192;

/// A group of interchangeable servers.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    pub(crate) dialect: Dialect,
    pub(crate) limit_name: LimitName,
    /// Sent instead of the client's key.
    pub(crate) key: Option<String>,
    pub(crate) timeout: HumanDuration,
    pub(crate) idle_timeout: HumanDuration,
    pub(crate) retry: Option<RetrySpec>,
    pub(crate) retry_budget: RetryBudget,
    next: AtomicUsize,
}

impl Upstream {
    /// # Errors
    /// A message about an invalid value.
    pub(crate) fn new(name: &str, spec: &UpstreamSpec) -> Result<Self, String> {
        if spec.addresses.is_empty() {
            return Err(format!("upstream `{name}` has no address: add `addresses: [HOST:PORT]`"));
        }
        if spec.buffer.0 < MIN_BUFFER {
            return Err(format!("upstream `{name}`: `buffer` is at least {MIN_BUFFER} bytes"));
        }
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        Ok(Self {
            name: Arc::from(name),
            endpoints: spec
                .addresses
                .iter()
                .enumerate()
                .map(|(number, address): (usize, &String)| {
                    let endpoint = Endpoint::new(address, spec).map(Arc::new);
                    // The message omits the address, which may be a URL with a password.
                    endpoint.ok_or_else(|| {
                        format!("upstream `{name}`: its address {} is not HOST:PORT", number + 1)
                    })
                })
                .collect::<Result<_, _>>()?,
            dialect: spec.dialect,
            limit_name: spec.token_limit,
            key: key.map_err(|problem| format!("upstream `{name}`: {problem}"))?,
            timeout: spec.timeout,
            idle_timeout: spec.idle_timeout,
            retry: spec.retry,
            retry_budget: RetryBudget::new(spec.retry.map_or(0.0, |retry| retry.budget)),
            next: AtomicUsize::new(0),
        })
    }

    /// The next server in turn for a request; `None` if none is available. `tried` failed before,
    /// and is chosen only without an alternative.
    pub(crate) fn choose(&self, tried: Option<&Arc<Endpoint>>) -> Option<InFlightGuard> {
        if let [only] = self.endpoints.as_slice() {
            return admitted(only);
        }
        let start = self.next.fetch_add(1, Ordering::Relaxed) % self.endpoints.len();
        let (before, from_start) = self.endpoints.split_at(start);
        let available =
            || from_start.iter().chain(before).filter(|endpoint| endpoint.is_available());
        let untried =
            available().find(|endpoint| tried.is_none_or(|tried| !Arc::ptr_eq(tried, endpoint)));
        untried.or_else(|| available().next()).and_then(admitted)
    }
}

/// A request to a server that admits it now.
fn admitted(endpoint: &Arc<Endpoint>) -> Option<InFlightGuard> {
    endpoint.admits().map(|admission| InFlightGuard::new(endpoint, admission))
}
