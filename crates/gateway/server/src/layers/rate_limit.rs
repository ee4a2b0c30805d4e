//! Rate limits: the counted subjects, and the response headers.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue, RETRY_AFTER};
use plimsoll_gateway_store::{Algorithm, Charge, Decision, Limit, LimitKey, MAX_CHARGES, Store};
use serde::Deserialize;

use crate::base::clock;
use crate::config::units::HumanDuration;
use crate::http::error_response::ErrorResponse;
use crate::layers::identity::Identity;
use crate::layers::metrics::Metrics;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// A rate limit.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateLimitSpec {
    /// The requests that share the limit. `tenant` and `key` need the sections `tenant` and `auth`.
    pub per: Per,
    /// Requests in a window; 0 for no limit.
    pub requests: u32,
    /// Length of the window.
    #[serde(default = "HumanDuration::default_secs::<60>")]
    pub window: HumanDuration,
    /// The counting algorithm.
    #[serde(default)]
    pub algorithm: Algorithm,
}

/// The requests that share a rate limit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// all
    Global,
    /// the requests of one tenant
    Tenant,
    /// the requests with one key
    Key,
    /// the requests from one client address
    Address,
}

/// One configured rate limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    per: Per,
    limit: Limit,
}

/// The subjects of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) address: IpAddr,
    /// `None` for requests with a rejected identity, and for administration: only limits by address
    /// apply.
    pub(crate) identity: Option<&'a Identity>,
}

impl RateLimit {
    /// Whether it counts tenants.
    pub(crate) fn counts_tenants(&self) -> bool {
        self.per == Per::Tenant
    }
}

/// The limits of a configuration; a limit of zero requests is omitted.
///
/// # Errors
/// A message about too many limits, or an unsupported window.
pub(crate) fn from_specs(specs: &[RateLimitSpec]) -> Result<Vec<RateLimit>, String> {
    let limited = specs.iter().filter_map(|spec| Some((spec, NonZeroU32::new(spec.requests)?)));
    if limited.clone().count() > MAX_CHARGES {
        return Err(format!("rate_limits: at most {MAX_CHARGES} limits are supported"));
    }
    limited
        .map(|(spec, requests)| {
            let limit = Limit::new(requests, spec.window.0, spec.algorithm);
            let limit = limit.map_err(|error| format!("rate_limits: {error}"))?;
            Ok(RateLimit { per: spec.per, limit })
        })
        .collect()
}

/// Counts a request in all limits that apply to it, and appends the rate limit headers to
/// `headers`; if one limit is used up, it counts in none.
///
/// # Errors
/// A limit is used up, or the store is unavailable.
pub(crate) async fn check(
    limits: &[RateLimit],
    caller: &Caller<'_>,
    store: &Store,
    metrics: &Metrics,
    headers: &mut Vec<(HeaderName, HeaderValue)>,
) -> Result<(), ErrorResponse> {
    let by_address = limits.iter().any(|limit| limit.per == Per::Address);
    let address = by_address.then(|| subject_of(caller.address));
    let charges: Vec<_> = limits
        .iter()
        .filter_map(|limit| {
            let subject = caller.limit_key(limit.per, address.as_deref())?;
            Some(Charge { key: subject, limit: &limit.limit })
        })
        .collect();
    if charges.is_empty() {
        return Ok(());
    }
    let decision = store.check(clock::now(), &charges).await;
    let decision = decision
        .map_err(|_| ErrorResponse::store_unavailable("the store of the limits is unavailable"))?;
    push_headers(&decision, headers);
    if decision.allowed {
        return Ok(());
    }
    metrics.rate_limited.inc();
    let mut error = ErrorResponse::rate_limited(format!("more than {} requests", decision.limit));
    error.headers.push((RETRY_AFTER, whole_seconds(decision.retry_after)));
    push_headers(&decision, &mut error.headers);
    Err(error)
}

impl<'a> Caller<'a> {
    /// The key of a limit; `None` if the limit does not apply to the caller.
    fn limit_key(&self, per: Per, address: Option<&'a str>) -> Option<LimitKey<'a>> {
        match per {
            Per::Address => Some(LimitKey::new("address", address?)),
            Per::Global => self.identity.map(|_| LimitKey::new("global", "")),
            Per::Tenant => self.identity.map(Identity::tenant_key),
            Per::Key => {
                let consumer = self.identity?.consumer.as_ref();
                Some(LimitKey::new("key", consumer.map_or("", |consumer| &consumer.name)))
            }
        }
    }
}

/// The name of an address in limits. Only the first 64 bits of an IPv6 address count, because the
/// host chooses the rest itself (RFC 4291, 2.5.1).
fn subject_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64));
            format!("{network}/64")
        }
    }
}

fn push_headers(decision: &Decision, headers: &mut Vec<(HeaderName, HeaderValue)>) {
    headers.push((LIMIT, decision.limit.into()));
    headers.push((REMAINING, decision.remaining.into()));
    headers.push((RESET, whole_seconds(decision.reset)));
}

/// Whole seconds, rounded up, so that a client that waits this long has waited long enough.
fn whole_seconds(duration: Duration) -> HeaderValue {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        for (address, subject) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(subject_of(address.parse().unwrap()), subject, "{address}");
        }
    }
}
