//! Looks up a target's host in DNS, and caches the addresses.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};

use plimsoll_measure::{Clock, ErrorClass, Moment, Nanos};

use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// The time for which the addresses are cached. Long enough that a burst of new connections needs
/// one look-up, short enough to follow a target whose address changes.
const CACHE_TTL: Nanos = Nanos::from_secs(30);

/// Resolves the host of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    cached: RefCell<Option<(Moment, Vec<SocketAddr>)>>,
}

impl Resolver {
    /// The addresses, and the duration of the look-up if one was needed.
    pub(crate) async fn resolve<C: Clock>(
        &self,
        clock: &C,
        endpoint: &Endpoint,
    ) -> Result<(Vec<SocketAddr>, Option<Nanos>), Failure> {
        if let Ok(address) = endpoint.host().parse::<IpAddr>() {
            return Ok((vec![SocketAddr::new(address, endpoint.port())], None));
        }
        let started = clock.now();
        if let Some((at, addresses)) = &*self.cached.borrow()
            && started.since(*at) < CACHE_TTL
        {
            return Ok((addresses.clone(), None));
        }
        let dns = |detail: String| Failure::new(ErrorClass::Dns, detail);
        let found = tokio::net::lookup_host((endpoint.host(), endpoint.port())).await;
        let addresses: Vec<_> = found.map_err(|error| dns(error.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(dns(format!("`{}` has no address", endpoint.host())));
        }
        let now = clock.now();
        self.cached.replace(Some((now, addresses.clone())));
        Ok((addresses, Some(now.since(started))))
    }
}
