//! The identity of the caller. Limits, budgets and the cache are keyed only by this value.

use std::sync::Arc;

use plimsoll_gateway_store::LimitKey;
use ring::digest::Context;

use crate::layers::auth::Consumer;

/// The identity of the caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// The owner of the key.
    pub(crate) consumer: Option<Arc<Consumer>>,
    pub(crate) tenant: Option<Arc<str>>,
    /// Digest of the client's credentials that are forwarded upstream. Set only if answers are
    /// cached, because the upstream's answer may depend on the credential.
    pub(crate) credential: Option<[u8; 32]>,
}

/// The name under which requests without a tenant are counted, if configured. Its scope differs
/// from the tenants' scope.
const ANONYMOUS: LimitKey<'static> = LimitKey::new("anonymous", "");

impl Identity {
    /// The key under which the tenant is counted.
    pub(crate) fn tenant_key(&self) -> LimitKey<'_> {
        self.tenant.as_deref().map_or(ANONYMOUS, |tenant| LimitKey::new("tenant", tenant))
    }

    /// The owner of the sessions, approvals and runs that the request creates: the tenant, or else
    /// the consumer, or else everyone.
    pub(crate) fn owner(&self) -> String {
        match (&self.tenant, &self.consumer) {
            (Some(tenant), _) => format!("t:{tenant}"),
            (None, Some(consumer)) => format!("c:{}", consumer.name),
            (None, None) => "-".to_owned(),
        }
    }

    /// The owner's maximum share of a number of places. One tenant may use seven eighths; without
    /// identities all callers are one owner.
    pub(crate) fn share_of(&self, places: usize) -> usize {
        let is_known = self.tenant.is_some() || self.consumer.is_some();
        if is_known { places - places / 8 } else { places }
    }

    /// Writes the identity that two requests must share to share an answer: the tenant, or else the
    /// consumer, and the credential for the upstream.
    pub(crate) fn write_scope(&self, hash: &mut Context) {
        let (kind, name) = match (&self.tenant, &self.consumer) {
            (Some(tenant), _) => (b"t", &**tenant),
            (None, Some(consumer)) => (b"c", &*consumer.name),
            (None, None) => (b"-", ""),
        };
        hash.update(kind);
        hash.update(&(name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
        hash.update(if self.credential.is_some() { b"p" } else { b"n" });
        hash.update(self.credential.as_ref().map_or(&[], |digest| &digest[..]));
    }
}

#[cfg(test)]
mod tests {
    use ring::digest::SHA256;

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
