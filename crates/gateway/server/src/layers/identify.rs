//! Who asks is decided here, once for each request, before any layer that keeps state.

use std::sync::Arc;

use hyper::HeaderMap;
use ring::digest::{Context, SHA256};

use crate::config::Config;
use crate::http::error_response::ErrorResponse;
use crate::http::headers::passed_on;
use crate::layers::auth::Consumer;
use crate::layers::identity::Identity;
use crate::layers::rate_limit::RateLimit;
use crate::routes::router::{Handler, Proxy, Route};

/// Decides who asks, and whether they may use the route.
///
/// # Errors
/// A key, a token or a tenant is missing or wrong, or the route is not for this consumer.
pub(crate) fn identify(
    config: &Config,
    route: &Route,
    path: &str,
    headers: &HeaderMap,
) -> Result<Identity, ErrorResponse> {
    let mut identity = Identity::default();
    if let Some(auth) = &config.auth {
        let consumer = auth.consumer(headers)?;
        check_route(consumer, route)?;
        identity.consumer = Some(Arc::clone(consumer));
    }
    if let Some(rule) = &config.tenant {
        identity.tenant = rule.tenant(headers, identity.consumer.as_deref())?;
        if identity.tenant.is_none() && rule.refuses_none(counts_tenants(config, route, path)) {
            return Err(rule.none_named());
        }
    }
    if let Handler::Proxy(proxy) = &route.handler
        && proxy.is_llm(path)
        && config.spec.cache.is_some()
    {
        identity.credential = credential(config, proxy, headers);
    }
    Ok(identity)
}

/// Checks that a consumer may use the route.
fn check_route(consumer: &Consumer, route: &Route) -> Result<(), ErrorResponse> {
    if !route.consumers.is_empty() && !route.consumers.contains(&consumer.name) {
        return Err(ErrorResponse::forbidden("this route is not for this consumer"));
    }
    let scope = route.scope.as_ref().filter(|_| !consumer.scopes.is_empty());
    match scope {
        Some(scope) if !consumer.scopes.contains(scope) => {
            Err(ErrorResponse::insufficient_scope(format!("the key lacks the scope `{scope}`")))
        }
        _ => Ok(()),
    }
}

/// Whether a limit or a budget of tenants applies to the route.
fn counts_tenants(config: &Config, route: &Route, path: &str) -> bool {
    let spends = match &route.handler {
        Handler::Proxy(proxy) => proxy.is_llm(path),
        Handler::Agents(route) => route.spends(),
        handler => matches!(handler, Handler::Policy),
    };
    config.limits.iter().any(RateLimit::counts_tenants) || (spends && config.budgets.is_some())
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
    let mut digest = [0; 32];
    digest.copy_from_slice(hash.finish().as_ref());
    Some(digest)
}
