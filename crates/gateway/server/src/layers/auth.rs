//! Authentication by API key.

use std::sync::Arc;

use hashbrown::HashMap;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName};
use ring::digest::{Digest, SHA256, digest};
use serde::Deserialize;

use crate::config::secret::Secret;
use crate::http::error_response::ErrorResponse;
use crate::layers::identity::Identity;
use crate::layers::{Access, AdmissionRequest, Layer, Setup, header_name};

/// Authentication by API key.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AuthSpec {
    /// Header with the key; in `authorization` the key follows `Bearer`.
    #[serde(default = "authorization")]
    pub header: String,
    /// The keys.
    pub keys: Vec<KeySpec>,
}

/// One key. The gateway stores only its digest.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeySpec {
    /// Name of the consumer.
    pub name: String,
    /// SHA-256 of the key, in hexadecimal.
    pub sha256: Option<String>,
    /// The key itself, or `${NAME}` for an environment variable; instead of `sha256`.
    pub key: Option<Secret>,
    /// Tenant of the consumer; `*` allows any tenant in the tenant's header.
    pub tenant: Option<String>,
    /// Scopes of the key; an empty list allows everything.
    #[serde(default)]
    pub scopes: Vec<String>,
}

fn authorization() -> String {
    "authorization".to_owned()
}

/// The `tenant` of a key that may name any tenant in the header.
const ANY_TENANT: &str = "*";

/// The owner of a key.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) name: Arc<str>,
    pub(crate) tenant: Option<Arc<str>>,
    /// Whether the header may name any tenant.
    pub(crate) names_any_tenant: bool,
    pub(crate) scopes: Vec<String>,
}

/// The known keys, as digests.
#[derive(Debug)]
pub(crate) struct Auth {
    pub(crate) header: HeaderName,
    consumers: HashMap<[u8; 32], Arc<Consumer>>,
}

impl Layer for Auth {
    type Section = AuthSpec;

    fn new(spec: &AuthSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        let header = header_name("auth: `header`", &spec.header)?;
        let mut consumers = HashMap::new();
        for key in &spec.keys {
            let consumer = Consumer {
                name: Arc::from(key.name.as_str()),
                tenant: key.tenant.as_deref().filter(|name| *name != ANY_TENANT).map(Arc::from),
                names_any_tenant: key.tenant.as_deref() == Some(ANY_TENANT),
                scopes: key.scopes.clone(),
            };
            if consumers.insert(digest_of(key)?, Arc::new(consumer)).is_some() {
                return Err(format!(
                    "auth: the key of `{}` also belongs to another consumer",
                    key.name
                ));
            }
        }
        Ok(Self { header, consumers })
    }

    fn headers(&self) -> Vec<HeaderName> {
        vec![self.header.clone()]
    }

    fn admit(
        &self,
        request: &AdmissionRequest<'_>,
        identity: &mut Identity,
    ) -> Result<(), ErrorResponse> {
        let consumer = self.consumer(request.headers)?;
        check_access(consumer, request.access)?;
        identity.consumer = Some(Arc::clone(consumer));
        Ok(())
    }
}

impl Auth {
    /// The consumer of the request's key.
    pub(crate) fn consumer(&self, headers: &HeaderMap) -> Result<&Arc<Consumer>, ErrorResponse> {
        let Some(value) = headers.get(&self.header) else {
            return Err(ErrorResponse::auth_required(format!("send a key in `{}`", self.header)));
        };
        let value = value.as_bytes();
        let key = if self.header == AUTHORIZATION { bearer(value) } else { Some(value) };
        let Some(key) = key.filter(|key| !key.is_empty()) else {
            return Err(ErrorResponse::auth_required(
                "send the key as `Authorization: Bearer KEY`",
            ));
        };
        // The time of the look-up depends only on the digest, which reveals nothing about the key.
        let consumer = self.consumers.get(&sha256(key));
        consumer.ok_or_else(|| ErrorResponse::auth_failed("the key is not known"))
    }
}

/// The credential after `Bearer`.
pub(crate) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| rest.trim_ascii())
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    bytes_of(&digest(&SHA256, bytes))
}

/// The bytes of a SHA-256 digest.
pub(crate) fn bytes_of(digest: &Digest) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

fn digest_of(key: &KeySpec) -> Result<[u8; 32], String> {
    match (&key.sha256, &key.key) {
        (Some(hex), None) => from_hex(hex).ok_or_else(|| {
            format!("auth: the sha256 of `{}` is not 64 hexadecimal digits", key.name)
        }),
        (None, Some(secret)) => secret
            .reveal()
            .map(|key| sha256(key.as_bytes()))
            .map_err(|problem| format!("auth: {problem}")),
        _ => Err(format!("auth: `{}` needs either `sha256` or `key`", key.name)),
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in out.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(out)
}

/// Checks that a consumer may use the route.
fn check_access(consumer: &Consumer, access: &Access) -> Result<(), ErrorResponse> {
    if !access.consumers.is_empty() && !access.consumers.contains(&consumer.name) {
        return Err(ErrorResponse::forbidden("this consumer may not use this route"));
    }
    let scope = access.scope.as_ref().filter(|_| !consumer.scopes.is_empty());
    match scope {
        Some(scope) if !consumer.scopes.contains(scope) => {
            Err(ErrorResponse::insufficient_scope(format!("the key lacks the scope `{scope}`")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::made;

    fn auth(header: &str) -> Auth {
        // The digest of `open sesame`, computed by another program.
        let yaml = format!(
            "header: {header}\nkeys:\n  - {{name: ali, key: abc, tenant: cave}}\n  - {{name: baba, sha256: \
             41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb}}"
        );
        made::<Auth>(&serde_saphyr::from_str(&yaml).unwrap()).unwrap()
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_key_is_found_by_its_digest() {
        let auth = auth("apikey");
        for (value, name) in [("abc", Some("ali")), ("open sesame", Some("baba")), ("abd", None)] {
            let found = auth.consumer(&headers("apikey", value));
            assert_eq!(found.ok().map(|consumer| &*consumer.name), name, "{value}");
        }
        assert_eq!(auth.consumer(&HeaderMap::new()).unwrap_err().status, 401);
        assert_eq!(auth.consumer(&headers("apikey", "no")).unwrap_err().status, 403);
    }

    #[test]
    fn in_authorization_the_key_follows_bearer() {
        let auth = auth("authorization");
        for (value, status) in [
            ("Bearer abc", None),
            ("bearer abc", None),
            ("abc", Some(401)),
            ("Bearer ", Some(401)),
            ("Bearer x", Some(403)),
        ] {
            let found = auth.consumer(&headers("authorization", value));
            assert_eq!(found.err().map(|error| error.status.as_u16()), status, "{value}");
        }
    }

    #[test]
    fn invalid_keys_are_refused() {
        for (keys, message) in [
            ("[{name: a}]", "either"),
            ("[{name: a, key: x, sha256: y}]", "either"),
            ("[{name: a, sha256: zz}]", "hexadecimal"),
            ("[{name: a, key: x}, {name: b, key: x}]", "another consumer"),
            ("[{name: a, key: '${NO_SUCH_VARIABLE_HERE}'}]", "NO_SUCH_VARIABLE_HERE"),
        ] {
            let spec = serde_saphyr::from_str(&format!("keys: {keys}")).unwrap();
            let error = made::<Auth>(&spec).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
