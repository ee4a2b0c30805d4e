//! The tenant of a request.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName};
use ring::hmac;
use serde_json::Value;

use crate::auth::{Consumer, bearer};
use crate::clock;
use crate::refusal::Refusal;
use crate::spec::TenantSpec;

/// Longest name of a tenant: names become keys of limits and budgets.
const LONGEST: usize = 128;

/// Where the tenant is named.
pub(crate) struct TenantRule {
    header: HeaderName,
    token: Option<Token>,
    required: bool,
}

struct Token {
    claim: String,
    key: hmac::Key,
}

impl std::fmt::Debug for TenantRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TenantRule").field("header", &self.header).finish_non_exhaustive()
    }
}

impl TenantRule {
    /// # Errors
    /// In words, for what makes no sense.
    pub(crate) fn new(spec: &TenantSpec) -> Result<Self, String> {
        let header = HeaderName::try_from(&spec.header)
            .map_err(|_| format!("tenant: `{}` is no name of a header", spec.header))?;
        let token = match (&spec.claim, &spec.secret) {
            (None, None) => None,
            (Some(claim), Some(secret)) => {
                let secret = secret.reveal().map_err(|name| {
                    format!("tenant: the environment variable `{name}` is not set")
                })?;
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
                Some(Token { claim: claim.clone(), key })
            }
            _ => return Err("tenant: `claim` and `secret` belong together".to_owned()),
        };
        Ok(Self { header, token, required: spec.required })
    }

    /// The tenant: of a signed token, of the key, or as the header says. None of them may contradict
    /// another.
    pub(crate) fn tenant(
        &self,
        headers: &HeaderMap,
        consumer: Option<&Consumer>,
    ) -> Result<Option<Arc<str>>, Refusal> {
        let claimed = self.token.as_ref().map(|token| token.read(headers)).transpose()?.flatten();
        let owned = consumer.and_then(|consumer| consumer.tenant.clone());
        let named = headers.get(&self.header).map(|value| name(value.as_bytes())).transpose()?;
        let mut tenant = None;
        for found in [claimed, owned, named].into_iter().flatten() {
            if tenant.as_ref().is_some_and(|tenant| *tenant != found) {
                return Err(Refusal::forbidden(
                    "tenant mismatch: the key or token belongs to another tenant",
                ));
            }
            tenant = Some(found);
        }
        if tenant.is_none() && self.required {
            return Err(Refusal::auth_required(format!("name the tenant in `{}`", self.header)));
        }
        Ok(tenant)
    }
}

fn name(bytes: &[u8]) -> Result<Arc<str>, Refusal> {
    match std::str::from_utf8(bytes) {
        Ok(name) if !name.is_empty() && name.len() <= LONGEST => Ok(Arc::from(name)),
        _ => Err(Refusal::bad_request("the tenant's name is empty, too long or no text")),
    }
}

impl Token {
    /// The claim of a bearer token. A bearer value that is no token is somebody's key; one that is a token
    /// must be right.
    fn read(&self, headers: &HeaderMap) -> Result<Option<Arc<str>>, Refusal> {
        let value = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        let text = value.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
        let Some((signed, signature)) =
            text.rsplit_once('.').filter(|(head, _)| head.contains('.'))
        else {
            return Ok(None);
        };
        let refuse = |message: &str| Refusal::auth_failed(message);
        let signature = decode(signature).ok_or_else(|| refuse("the token is malformed"))?;
        hmac::verify(&self.key, signed.as_bytes(), &signature)
            .map_err(|_| refuse("the token's signature is wrong"))?;
        let (head, claims) = signed.split_once('.').unwrap_or_default();
        let (head, claims) =
            parse(head).zip(parse(claims)).ok_or_else(|| refuse("the token is malformed"))?;
        if head.get("alg").and_then(Value::as_str) != Some("HS256") {
            return Err(refuse("the token is not signed with HS256"));
        }
        let now = clock::unix_ms() / 1_000;
        if claims.get("exp").and_then(Value::as_u64).is_some_and(|end| end <= now) {
            return Err(Refusal::auth_required("the token has expired"));
        }
        claims
            .get(&self.claim)
            .and_then(Value::as_str)
            .map(|tenant| name(tenant.as_bytes()))
            .transpose()
    }
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

fn parse(part: &str) -> Option<Value> {
    serde_json::from_slice(&decode(part)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(required: bool) -> TenantRule {
        let yaml = format!("claim: tenant\nsecret: s3cret\nrequired: {required}");
        TenantRule::new(&serde_saphyr::from_str(&yaml).unwrap()).unwrap()
    }

    fn token(secret: &str, head: &str, claims: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims));
        let tag =
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
        format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    fn asked(rule: &TenantRule, headers: &[(&str, &str)]) -> Result<Option<String>, u16> {
        let mut map = HeaderMap::new();
        for (header, value) in headers {
            map.insert(HeaderName::try_from(*header).unwrap(), value.parse().unwrap());
        }
        let found = rule.tenant(&map, None);
        found
            .map(|tenant| tenant.map(|tenant| tenant.to_string()))
            .map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn the_tenant_is_claimed_by_a_signed_token_or_named_by_the_header() {
        let hs = r#"{"alg":"HS256","typ":"JWT"}"#;
        let good = token("s3cret", hs, r#"{"tenant":"retail"}"#);
        let expired = token("s3cret", hs, r#"{"tenant":"retail","exp":1000}"#);
        let forged = token("guess", hs, r#"{"tenant":"retail"}"#);
        let unsigned = token("s3cret", r#"{"alg":"none"}"#, r#"{"tenant":"retail"}"#);
        let retail = || Ok(Some("retail".to_owned()));
        let rule = rule(false);
        assert_eq!(asked(&rule, &[("authorization", &good)]), retail());
        assert_eq!(asked(&rule, &[("x-tenant-id", "retail")]), retail());
        assert_eq!(asked(&rule, &[("authorization", &good), ("x-tenant-id", "retail")]), retail());
        assert_eq!(asked(&rule, &[("authorization", &good), ("x-tenant-id", "bank")]), Err(403));
        assert_eq!(asked(&rule, &[("authorization", &expired)]), Err(401));
        assert_eq!(asked(&rule, &[("authorization", &forged)]), Err(403));
        assert_eq!(asked(&rule, &[("authorization", &unsigned)]), Err(403));
        assert_eq!(asked(&rule, &[("authorization", "Bearer some-key")]), Ok(None));
        assert_eq!(asked(&rule, &[]), Ok(None));
    }

    /// The example token of RFC 7515, appendix A.1, with its key.
    #[test]
    fn a_token_made_by_others_is_verified() {
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let text = "Bearer eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let key = hmac::Key::new(hmac::HMAC_SHA256, &decode(key).unwrap());
        let token = Token { claim: "iss".to_owned(), key };
        let headers = HeaderMap::from_iter([(AUTHORIZATION, text.parse().unwrap())]);
        // Its signature is right; its time was over in 2011.
        let refusal = token.read(&headers).unwrap_err();
        assert_eq!(
            (refusal.status.as_u16(), refusal.message.as_str()),
            (401, "the token has expired")
        );
    }

    #[test]
    fn a_tenant_can_be_required() {
        assert_eq!(asked(&rule(true), &[]), Err(401));
        assert_eq!(asked(&rule(true), &[("x-tenant-id", "")]), Err(400));
    }
}
