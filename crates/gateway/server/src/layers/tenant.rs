//! The tenant of a request.

use std::sync::Arc;

use derive_where::derive_where;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use serde_json::Value;
use smart_default::SmartDefault;

use crate::config::secret::Secret;
use crate::http::error_response::ErrorResponse;
use crate::layers::auth::{Consumer, bearer};
use crate::layers::identity::Identity;
use crate::layers::jwt::TokenVerifier;
use crate::layers::{AdmissionRequest, Layer, Setup, header_name};

/// The sources of the tenant's name.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TenantSpec {
    /// Header with the tenant's name. With keys or tokens it only repeats their tenant.
    #[default("x-tenant-id".to_owned())]
    pub header: String,
    /// Claim of a bearer token (JWT, HS256) with the tenant's name.
    pub claim: Option<String>,
    /// Secret that such tokens are signed with.
    pub secret: Option<Secret>,
    /// Whether requests without a tenant are refused. They always are if a limit per tenant or a
    /// budget applies, unless `anonymous` is set.
    pub required: bool,
    /// Whether requests without a tenant count as one separate tenant in limits and budgets.
    pub anonymous: bool,
}

/// Longest name of a tenant: names become keys of limits and budgets.
const MAX_NAME_BYTES: usize = 128;

/// The configured sources of the tenant's name.
#[derive_where(Debug)]
pub(crate) struct TenantRule {
    header: HeaderName,
    #[derive_where(skip)]
    token: Option<TenantToken>,
    required: bool,
    anonymous: bool,
}

/// Tokens with a claim that names the tenant.
struct TenantToken {
    claim: String,
    verifier: TokenVerifier,
}

impl Layer for TenantRule {
    type Section = TenantSpec;

    fn new(spec: &TenantSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        let header = header_name("tenant: `header`", &spec.header)?;
        let token = match (&spec.claim, &spec.secret) {
            (None, None) => None,
            (Some(claim), Some(secret)) => {
                let secret = secret.reveal().map_err(|problem| format!("tenant: {problem}"))?;
                let verifier = TokenVerifier::new(secret.as_bytes());
                Some(TenantToken { claim: claim.clone(), verifier })
            }
            _ => return Err("tenant: `claim` and `secret` need each other".to_owned()),
        };
        if spec.required && spec.anonymous {
            return Err("tenant: `required` and `anonymous` exclude each other".to_owned());
        }
        let (required, anonymous) = (spec.required, spec.anonymous);
        Ok(Self { header, token, required, anonymous })
    }

    fn headers(&self) -> Vec<HeaderName> {
        vec![self.header.clone()]
    }

    fn admit(
        &self,
        request: &AdmissionRequest<'_>,
        identity: &mut Identity,
    ) -> Result<(), ErrorResponse> {
        identity.tenant = self.tenant(request.headers, identity.consumer.as_deref())?;
        if identity.tenant.is_none() && self.refuses_none(request.counts_tenants) {
            return Err(self.none_named());
        }
        Ok(())
    }
}

impl TenantRule {
    /// The header that names the tenant.
    pub(crate) const fn header(&self) -> &HeaderName {
        &self.header
    }

    /// Whether a request without a tenant is refused, on routes that count tenants or others.
    pub(crate) const fn refuses_none(&self, counts: bool) -> bool {
        self.required || (counts && !self.anonymous)
    }

    /// The refusal of a request without a tenant.
    pub(crate) fn none_named(&self) -> ErrorResponse {
        ErrorResponse::auth_required(format!("name the tenant in `{}`", self.header))
    }

    /// The tenant that the key or the token proves. The header may repeat it, and is trusted only
    /// without keys and tokens, or if the key may name any tenant.
    pub(crate) fn tenant(
        &self,
        headers: &HeaderMap,
        consumer: Option<&Consumer>,
    ) -> Result<Option<Arc<str>>, ErrorResponse> {
        let claimed = self.token.as_ref().map(|token| token.tenant(headers)).transpose()?.flatten();
        let owned = consumer.and_then(|consumer| consumer.tenant.clone());
        let named =
            headers.get(&self.header).map(|value| parse_name(value.as_bytes())).transpose()?;
        let may_name =
            consumer.map_or_else(|| self.token.is_none(), |consumer| consumer.names_any_tenant);
        if named.is_some() && claimed.is_none() && owned.is_none() && !may_name {
            let message = "tenant mismatch: the header repeats the tenant of a key or token";
            return Err(ErrorResponse::forbidden(message));
        }
        let mut tenant = None;
        for found in [claimed, owned, named].into_iter().flatten() {
            if tenant.as_ref().is_some_and(|tenant| *tenant != found) {
                return Err(ErrorResponse::forbidden(
                    "tenant mismatch: the key or token belongs to another tenant",
                ));
            }
            tenant = Some(found);
        }
        Ok(tenant)
    }
}

fn parse_name(bytes: &[u8]) -> Result<Arc<str>, ErrorResponse> {
    match std::str::from_utf8(bytes) {
        Ok(name)
            if (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control) =>
        {
            Ok(Arc::from(name))
        }
        _ => Err(ErrorResponse::bad_request("the tenant's name is empty, too long or not text")),
    }
}

impl TenantToken {
    /// The tenant of a bearer token. A bearer value that is not a token may be a key for the
    /// upstream and is ignored; a token must be valid.
    fn tenant(&self, headers: &HeaderMap) -> Result<Option<Arc<str>>, ErrorResponse> {
        let value = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        let text = value.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
        let is_token = text.rsplit_once('.').is_some_and(|(signed, _)| signed.contains('.'));
        if !is_token {
            return Ok(None);
        }
        let claims = self.verifier.verify(text)?;
        let tenant = claims.get(&self.claim).and_then(Value::as_str);
        tenant.map(|tenant| parse_name(tenant.as_bytes())).transpose()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::hmac;

    use super::*;
    use crate::layers::made;

    const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

    fn rule(required: bool) -> TenantRule {
        let yaml = format!("claim: tenant\nsecret: s3cret\nrequired: {required}");
        made::<TenantRule>(&serde_saphyr::from_str(&yaml).unwrap()).unwrap()
    }

    fn token(secret: &str, head: &str, claims: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims));
        let tag =
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
        format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    fn tenant_of(rule: &TenantRule, headers: &[(&str, &str)]) -> Result<Option<String>, u16> {
        let mut map = HeaderMap::new();
        for (header, value) in headers {
            map.insert(HeaderName::try_from(*header).unwrap(), value.parse().unwrap());
        }
        let found = rule.tenant(&map, None);
        found
            .map(|tenant| tenant.map(|tenant| tenant.to_string()))
            .map_err(|error| error.status.as_u16())
    }

    #[test]
    fn the_tenant_is_claimed_by_a_signed_token_or_named_by_the_header() {
        let good = token("s3cret", HS256, r#"{"tenant":"retail"}"#);
        let expired = token("s3cret", HS256, r#"{"tenant":"retail","exp":1000}"#);
        let forged = token("guess", HS256, r#"{"tenant":"retail"}"#);
        let unsigned = token("s3cret", r#"{"alg":"none"}"#, r#"{"tenant":"retail"}"#);
        let retail = || Ok(Some("retail".to_owned()));
        let rule = rule(false);
        assert_eq!(tenant_of(&rule, &[("authorization", &good)]), retail());
        assert_eq!(tenant_of(&rule, &[("x-tenant-id", "retail")]), Err(403), "nothing proves it");
        let both = [("authorization", &*good), ("x-tenant-id", "retail")];
        assert_eq!(tenant_of(&rule, &both), retail());
        let contradiction = [("authorization", &*good), ("x-tenant-id", "bank")];
        assert_eq!(tenant_of(&rule, &contradiction), Err(403));
        assert_eq!(tenant_of(&rule, &[("authorization", &expired)]), Err(401));
        assert_eq!(tenant_of(&rule, &[("authorization", &forged)]), Err(403));
        assert_eq!(tenant_of(&rule, &[("authorization", &unsigned)]), Err(403));
        assert_eq!(tenant_of(&rule, &[("authorization", "Bearer some-key")]), Ok(None));
        assert_eq!(tenant_of(&rule, &[]), Ok(None));
    }

    #[test]
    fn standard_claims_are_validated_and_others_are_not() {
        let rule = rule(false);
        let retail = || Ok(Some("retail".to_owned()));
        for (claims, expected) in [
            (r#"{"tenant":"retail","exp":4000000000,"nbf":1000,"aud":"x","iss":"y"}"#, retail()),
            (r#"{"tenant":"retail","exp":4000000000.5}"#, retail()),
            (r#"{"tenant":"retail","nbf":4000000000}"#, Err(401)),
            (r#"{"tenant":"retail","exp":"4000000000"}"#, Err(403)),
            (r#"{"tenant":"retail","nbf":"1000"}"#, Err(403)),
            (r#"{"other":"retail"}"#, Ok(None)),
            (r#"{"tenant":7}"#, Ok(None)),
            (r#"{"tenant":"retail","exp":1000.5}"#, Err(401)),
            (r#"{"tenant":"retail","exp":null}"#, Err(403)),
            (r#"{"tenant":"retail","exp":-1}"#, Err(403)),
            (r#"{"tenant":"retail","nbf":4000000000.5}"#, Err(401)),
            (r#"{"tenant":"re\u0000tail"}"#, Err(400)),
            ("[]", Err(403)),
        ] {
            let token = token("s3cret", HS256, claims);
            assert_eq!(tenant_of(&rule, &[("authorization", &token)]), expected, "{claims}");
        }
        let other = token("s3cret", r#"{"alg":"HS512"}"#, r#"{"tenant":"retail"}"#);
        assert_eq!(tenant_of(&rule, &[("authorization", &other)]), Err(403), "another algorithm");
    }

    #[test]
    fn without_a_tenant_a_request_is_refused_where_tenants_are_counted() {
        for (required, anonymous, counts, refused) in [
            (false, false, false, false),
            (false, false, true, true),
            (false, true, true, false),
            (true, false, false, true),
            (true, false, true, true),
        ] {
            let yaml = format!("required: {required}\nanonymous: {anonymous}");
            let rule = made::<TenantRule>(&serde_saphyr::from_str(&yaml).unwrap()).unwrap();
            assert_eq!(rule.refuses_none(counts), refused, "{yaml} {counts}");
            assert_eq!(rule.tenant(&HeaderMap::new(), None).unwrap(), None);
        }
        let both = serde_saphyr::from_str("required: true\nanonymous: true").unwrap();
        assert!(made::<TenantRule>(&both).unwrap_err().contains("exclude"));
        assert_eq!(rule(true).none_named().status, 401);
        assert_eq!(tenant_of(&rule(true), &[("x-tenant-id", "")]), Err(400));
    }
}
