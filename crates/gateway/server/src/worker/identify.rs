//! Identifies the caller once for each request, before any stateful layer.

use hyper::HeaderMap;
use ring::digest::{Context, SHA256};

use crate::assembly::config::Config;
use crate::assembly::router::{Handler, Route};
use crate::exchange::headers::passed_on;
use crate::http::error_response::ErrorResponse;
use crate::layers::AdmissionRequest;
use crate::layers::auth::bytes_of;
use crate::layers::identity::Identity;
use crate::layers::rate_limit::RateLimit;
use crate::upstream::proxy::Proxy;

/// Identifies the caller, and checks access to the route.
///
/// # Errors
/// A key, a token or a tenant is missing or wrong, or the route does not allow this consumer.
pub(crate) fn identify(
    config: &Config,
    route: &Route,
    path: &str,
    headers: &HeaderMap,
) -> Result<Identity, ErrorResponse> {
    let mut identity = Identity::default();
    let counts_tenants = counts_tenants(config, route, path);
    let request = AdmissionRequest { headers, access: &route.access, counts_tenants };
    config.layers.admit(&request, &mut identity)?;
    if let Handler::Proxy(proxy) = &route.handler
        && proxy.is_llm(path)
        && config.layers.cache.is_some()
    {
        identity.credential = credential(config, proxy, headers);
    }
    Ok(identity)
}

/// Whether a limit or a budget of tenants applies to the route.
fn counts_tenants(config: &Config, route: &Route, path: &str) -> bool {
    let spends = match &route.handler {
        Handler::Proxy(proxy) => proxy.is_llm(path),
        Handler::Agents(route) => route.spends(),
        handler => matches!(handler, Handler::Policy),
    };
    config.limits.iter().any(RateLimit::counts_tenants)
        || (spends && config.layers.budgets.is_some())
}

fn credential(config: &Config, proxy: &Proxy, headers: &HeaderMap) -> Option<[u8; 32]> {
    let mut passed = passed_on(headers, config, &proxy.upstream).peekable();
    passed.peek()?;
    let mut hash = Context::new(&SHA256);
    for (name, value) in passed {
        hash.update(name.as_str().as_bytes());
        hash.update(&(value.len() as u64).to_be_bytes());
        hash.update(value.as_bytes());
    }
    Some(bytes_of(&hash.finish()))
}
