//! Rate limits: who is counted, and what the caller is told.

use std::num::NonZeroU32;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue, RETRY_AFTER};
use plimsoll_gateway_store::{Algorithm, Charge, Decision, Limit, LimitKey, MAX_CHARGES};

use crate::clock;
use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::spec::{AlgorithmSpec, Per, RateLimitSpec};

/// A limit, and who shares it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    per: Per,
    limit: Limit,
}

/// The limits of a configuration; a limit of zero requests is no limit.
///
/// # Errors
/// In words, for a window that cannot be counted in.
pub(crate) fn read(specs: &[RateLimitSpec]) -> Result<Vec<Shared>, String> {
    let limited = specs.iter().filter_map(|spec| Some((spec, NonZeroU32::new(spec.requests)?)));
    if limited.clone().count() > MAX_CHARGES {
        return Err(format!("rate_limits: at most {MAX_CHARGES} at once"));
    }
    limited
        .map(|(spec, requests)| {
            let limit = Limit::new(requests, spec.window.0, spec.algorithm.into());
            let limit = limit.map_err(|error| format!("rate_limits: {error}"))?;
            Ok(Shared { per: spec.per, limit })
        })
        .collect()
}

impl From<AlgorithmSpec> for Algorithm {
    fn from(spec: AlgorithmSpec) -> Self {
        match spec {
            AlgorithmSpec::Sliding => Self::Sliding,
            AlgorithmSpec::Log => Self::Log,
            AlgorithmSpec::Fixed => Self::Fixed,
            AlgorithmSpec::Bucket => Self::Bucket,
        }
    }
}

/// Counts a request in all limits that apply to it, or in none and refuses it.
pub(crate) async fn admit(
    exchange: &Exchange,
    extra: &mut Vec<(HeaderName, HeaderValue)>,
) -> Result<(), Refusal> {
    let config = &exchange.config;
    if config.limits.is_empty() || config.faults.limiter_open {
        return Ok(());
    }
    let by_address = config.limits.iter().any(|shared| shared.per == Per::Address);
    let address = by_address.then(|| exchange.client.ip().to_string());
    let charges: Vec<_> = config
        .limits
        .iter()
        .filter_map(|shared| {
            let subject = subject(exchange, shared.per, address.as_deref())?;
            Some(Charge { subject, limit: &shared.limit })
        })
        .collect();
    if charges.is_empty() {
        return Ok(());
    }
    let decided = exchange.worker.store().check(clock::now(), &charges).await;
    let decision = decided.map_err(|_| Refusal::store_gone("the store of the limits is gone"))?;
    tell(&decision, extra);
    if decision.allowed {
        return Ok(());
    }
    exchange.worker.shared().meters.limited();
    let mut refusal = Refusal::rate_limited(format!("more than {} requests", decision.limit));
    refusal.headers.push((RETRY_AFTER, seconds(decision.retry_after)));
    tell(&decision, &mut refusal.headers);
    Err(refusal)
}

/// Who is counted; `None` where the request belongs to nobody of the kind.
fn subject<'a>(exchange: &'a Exchange, per: Per, address: Option<&'a str>) -> Option<LimitKey<'a>> {
    match per {
        Per::Global => Some(LimitKey::new("global", "")),
        Per::Tenant => Some(LimitKey::new("tenant", exchange.tenant.as_deref()?)),
        Per::Key => Some(LimitKey::new("key", &exchange.consumer.as_ref()?.name)),
        Per::Address => Some(LimitKey::new("address", address?)),
    }
}

fn tell(decision: &Decision, headers: &mut Vec<(HeaderName, HeaderValue)>) {
    let named = HeaderName::from_static;
    headers.push((named("x-ratelimit-limit"), decision.limit.into()));
    headers.push((named("x-ratelimit-remaining"), decision.remaining.into()));
    headers.push((named("x-ratelimit-reset"), seconds(decision.reset)));
}

/// Whole seconds, rounded up: who waits so long has waited long enough.
fn seconds(length: Duration) -> HeaderValue {
    (length.as_secs() + u64::from(length.subsec_nanos() > 0)).into()
}
