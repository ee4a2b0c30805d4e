//! Who asks: decided once for each request, before any layer that keeps state. Limits, budgets and
//! the cache are keyed by what is decided here, and by nothing else of the request.

use std::sync::Arc;

use hyper::HeaderMap;
use plimsoll_gateway_store::LimitKey;
use ring::digest::{Context, SHA256};

use crate::auth::Consumer;
use crate::config::Config;
use crate::error_response::ErrorResponse;
use crate::headers::passed_on;
use crate::router::{Handler, Proxy, Route};

/// Who asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// The owner of the key.
    pub(crate) consumer: Option<Arc<Consumer>>,
    pub(crate) tenant: Option<Arc<str>>,
    /// Digest of the credentials that the upstream gets from the client. Only where answers are
    /// cached: to another credential the upstream may answer something else, or nothing.
    credential: Option<[u8; 32]>,
}

/// The name under which requests without a tenant are counted, where that is configured. No tenant
/// has it: the scope differs.
const ANONYMOUS: LimitKey<'static> = LimitKey::new("anonymous", "");

impl Identity {
    /// Decides who asks, and whether they may use the route.
    ///
    /// # Errors
    /// A key, a token or a tenant is missing or wrong, or the route is not for this consumer.
    pub(crate) fn decide(
        config: &Config,
        route: &Route,
        headers: &HeaderMap,
    ) -> Result<Self, ErrorResponse> {
        let mut identity = Self::default();
        if let Some(auth) = &config.auth {
            let consumer = auth.consumer(headers)?;
            check_route(consumer, route)?;
            identity.consumer = Some(Arc::clone(consumer));
        }
        if let Some(rule) = &config.tenant {
            identity.tenant = rule.tenant(headers, identity.consumer.as_deref())?;
            if identity.tenant.is_none() && rule.refuses_none(counts_tenants(config, route)) {
                return Err(rule.none_named());
            }
        }
        if let Handler::Proxy(proxy) = &route.handler
            && proxy.llm
            && config.spec.cache.is_some()
        {
            identity.credential = credential(config, proxy, headers);
        }
        Ok(identity)
    }

    /// The key under which the tenant is counted.
    pub(crate) fn tenant_key(&self) -> LimitKey<'_> {
        self.tenant.as_deref().map_or(ANONYMOUS, |tenant| LimitKey::new("tenant", tenant))
    }

    /// Writes what two requests must have in common to share an answer: the tenant, without one the
    /// consumer, and the credential that the upstream judges.
    pub(crate) fn write_scope(&self, hash: &mut Context) {
        let (kind, name) = match (&self.tenant, &self.consumer) {
            (Some(tenant), _) => (b"t", &**tenant),
            (None, Some(consumer)) => (b"c", &*consumer.name),
            (None, None) => (b"-", ""),
        };
        hash.update(kind);
        hash.update(&(name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
        hash.update(self.credential.as_ref().map_or(&[], |digest| &digest[..]));
        hash.update(if self.credential.is_some() { b"p" } else { b"n" });
    }
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
fn counts_tenants(config: &Config, route: &Route) -> bool {
    let spends = matches!(&route.handler, Handler::Proxy(proxy) if proxy.llm);
    config.limits_tenants || (spends && config.budgets.is_some())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(tenant: Option<&str>, consumer: Option<&str>, credential: Option<u8>) -> Vec<u8> {
        let consumer = consumer.map(|name| {
            Arc::new(Consumer {
                name: Arc::from(name),
                tenant: None,
                names_any_tenant: false,
                scopes: Vec::new(),
            })
        });
        let identity = Identity {
            consumer,
            tenant: tenant.map(Arc::from),
            credential: credential.map(|byte| [byte; 32]),
        };
        let mut hash = Context::new(&SHA256);
        identity.write_scope(&mut hash);
        hash.finish().as_ref().to_vec()
    }

    #[test]
    fn only_the_same_tenant_with_the_same_credential_has_the_same_scope() {
        let all = [
            scope(None, None, None),
            scope(Some(""), None, None),
            scope(Some("a"), None, None),
            scope(None, Some("a"), None),
            scope(None, Some("b"), None),
            scope(Some("a"), None, Some(1)),
            scope(Some("a"), None, Some(2)),
            scope(None, None, Some(1)),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one), "{at}");
        }
        assert_eq!(scope(Some("a"), Some("k1"), None), scope(Some("a"), Some("k2"), None));
    }
}
