//! JSON Web Tokens, signed with HS256.
//!
//! `jsonwebtoken` parses and validates them. It uses only ring's HMAC, because its own cryptography
//! would add a second set of algorithms.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use ring::hmac;
use serde_json::Value;

use crate::http::error_response::ErrorResponse;

/// Verifies tokens with one secret.
pub(crate) struct TokenVerifier {
    key: DecodingKey,
    validation: Validation,
}

/// The claims of a token.
pub(crate) type Claims = HashMap<String, Value>;

impl TokenVerifier {
    pub(crate) fn new(secret: &[u8]) -> Self {
        // Fails if a provider is installed already: this one, or the embedding program's.
        let _ = RING.install_default();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        validation.validate_nbf = true;
        // Tokens may have any audience, because the gateway has no name to compare.
        validation.validate_aud = false;
        validation.leeway = 0;
        // A token is valid before `exp`, not in that second (RFC 7519, 4.1.4).
        validation.reject_tokens_expiring_in_less_than = 1;
        Self { key: DecodingKey::from_secret(secret), validation }
    }

    /// The claims of a valid token.
    ///
    /// # Errors
    /// The token is malformed, forged, expired, not valid yet or signed with another algorithm.
    pub(crate) fn verify(&self, token: &str) -> Result<Claims, ErrorResponse> {
        if has_critical_extension(token) {
            return Err(ErrorResponse::auth_failed("the token needs an extension (`crit`)"));
        }
        let decoded = jsonwebtoken::decode(token, &self.key, &self.validation);
        decoded.map(|token| token.claims).map_err(|error| refuse(&error))
    }
}

/// Whether the token's header names critical extensions (RFC 7515, 4.1.11). The gateway supports
/// none.
fn has_critical_extension(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let header = serde_json::from_slice::<HashMap<String, Value>>(&header).unwrap_or_default();
    header.contains_key("crit")
}

fn refuse(error: &Error) -> ErrorResponse {
    match error.kind() {
        ErrorKind::ExpiredSignature => ErrorResponse::auth_required("the token has expired"),
        ErrorKind::ImmatureSignature => ErrorResponse::auth_required("the token is not valid yet"),
        ErrorKind::InvalidSignature => ErrorResponse::auth_failed("the token's signature is wrong"),
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => {
            ErrorResponse::auth_failed("the token is not signed with HS256")
        }
        ErrorKind::InvalidClaimFormat(claim) => {
            ErrorResponse::auth_failed(format!("the token's claim `{claim}` is not a number"))
        }
        _ => ErrorResponse::auth_failed("the token is malformed"),
    }
}

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| hmac_verifier(*algorithm, key),
    key_utils: KeyUtils::new_unimplemented(),
};

fn hmac_verifier(algorithm: Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if algorithm != Algorithm::HS256 {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let secret = key.try_get_as_bytes()?;
    Ok(Box::new(HmacVerifier(hmac::Key::new(hmac::HMAC_SHA256, secret))))
}

struct HmacVerifier(hmac::Key);

impl Verifier<Vec<u8>> for HmacVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        hmac::verify(&self.0, message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for HmacVerifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_with_an_extension_that_must_be_understood_is_refused() {
        let verifier = TokenVerifier::new(b"secret");
        let token = |header: &str| {
            let text = [header, "{}"].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
            let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
            let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, text.as_bytes()));
            format!("{text}.{signature}")
        };
        assert!(verifier.verify(&token(r#"{"alg":"HS256"}"#)).is_ok());
        for header in [
            r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
            r#"{"alg":"HS256","crit":[]}"#,
            r#"{"alg":"HS256","crit":"exp"}"#,
        ] {
            assert_eq!(verifier.verify(&token(header)).unwrap_err().status.as_u16(), 403);
        }
    }

    /// The example token of RFC 7515, appendix A.1, with its key.
    #[test]
    fn the_token_of_rfc_7515_is_verified() {
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let mut verifier = TokenVerifier::new(&URL_SAFE_NO_PAD.decode(key).unwrap());
        // Its signature is right; it expired in 2011.
        let error = verifier.verify(token).unwrap_err();
        assert_eq!((error.status.as_u16(), error.message.as_str()), (401, "the token has expired"));
        verifier.validation.validate_exp = false;
        verifier.validation.reject_tokens_expiring_in_less_than = 0;
        assert_eq!(verifier.verify(token).unwrap()["iss"], "joe");
    }
}
