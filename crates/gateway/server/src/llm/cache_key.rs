//! The key of a cached response: all that decides what the response is.
//!
//! One function makes it, from who asks (the tenant, and the credential that is passed on), from
//! which upstream, and what: the endpoint with its query, what the body asks, and every header of
//! the client that is passed on. Only headers that are known to shape no answer are left out. What
//! the gateway itself changes in answers belongs to it, too: after a reload that turns scrubbing
//! on, no answer of before is served.

use hyper::HeaderMap;
use hyper::header::{
    CACHE_CONTROL, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE,
};
use hyper::http::request::Parts;
use plimsoll_gateway_dialect::{DialectError, Endpoint, write_cache_key};
use plimsoll_gateway_store::CacheKey;
use ring::digest::{Context, SHA256};

use crate::auth::Auth;
use crate::config::Config;
use crate::forwarded::is_own;
use crate::headers::is_credential;
use crate::identity::Identity;
use crate::tenant::TenantRule;
use crate::upstream::Upstream;

/// The digest of what a body asks of an endpoint, however it is written.
pub(super) type BodyKey = [u8; 32];

/// Headers that shape no answer: those of the connection, and those of tracing, which differ in
/// every request. Everything else that is passed on may say who asks.
const HARMLESS: [&str; 19] = [
    "accept-encoding",
    "b3",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-amzn-trace-id",
    "x-cloud-trace-context",
    "x-request-id",
    "x-correlation-id",
    "x-stainless-retry-count",
];

/// The beginning of such names.
const HARMLESS_PREFIX: &str = "x-b3-";

/// The digest of a body.
///
/// # Errors
/// As [`write_cache_key`].
pub(super) fn body_key(endpoint: Endpoint, body: &[u8]) -> Result<BodyKey, DialectError> {
    let mut hash = Context::new(&SHA256);
    write_cache_key(endpoint, body, |bytes| hash.update(bytes))?;
    Ok(finish(hash))
}

/// The key of the response to a request.
pub(super) fn response_key(
    (config, identity): (&Config, &Identity),
    parts: &Parts,
    upstream: &Upstream,
    body: &BodyKey,
) -> CacheKey {
    let mut hash = Context::new(&SHA256);
    identity.write_scope(&mut hash);
    hash.update(&config.text_rules);
    let query = parts.uri.query().unwrap_or_default();
    for part in [upstream.name.as_bytes(), query.as_bytes(), body] {
        update(&mut hash, part);
    }
    for (name, value) in shaping(config, &parts.headers) {
        update(&mut hash, name.as_str().as_bytes());
        update(&mut hash, value);
    }
    CacheKey(finish(hash))
}

/// Whether a request must not be served from the cache: it asks for a part, for a change since
/// another time, or for no cache.
pub(super) fn prevents_caching(headers: &HeaderMap) -> bool {
    let conditional =
        [RANGE, IF_RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE];
    conditional.iter().any(|name| headers.contains_key(name))
        || says(headers, &["no-store", "no-cache"])
}

/// Whether the `cache-control` of a response forbids to keep it for others.
pub(super) fn forbids_keeping(headers: &HeaderMap) -> bool {
    says(headers, &["no-store", "no-cache", "private"])
}

fn says(headers: &HeaderMap, directives: &[&str]) -> bool {
    headers.get_all(CACHE_CONTROL).iter().any(|value| {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        text.split(',').any(|one| {
            let name = one.split('=').next().unwrap_or_default().trim();
            directives.contains(&name)
        })
    })
}

/// The headers that are passed on and may shape the answer, in the order of their names. Those that
/// belong to the identity are not among them: credentials, and the tenant's name.
fn shaping<'h>(config: &Config, headers: &'h HeaderMap) -> Vec<(&'h HeaderName, &'h [u8])> {
    let own = [
        config.auth.as_ref().map(Auth::header),
        config.tenant.as_ref().map(TenantRule::header),
        config.request_id.as_ref(),
    ];
    let passes = |name: &HeaderName| {
        !(own.contains(&Some(name))
            || is_credential(name)
            || is_own(name)
            || is_harmless(name.as_str()))
    };
    let mut shaping: Vec<_> = headers
        .iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name, value.as_bytes()))
        .collect();
    shaping.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    shaping
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with(HARMLESS_PREFIX)
}

fn update(hash: &mut Context, part: &[u8]) {
    hash.update(&(part.len() as u64).to_be_bytes());
    hash.update(part);
}

fn finish(hash: Context) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(hash.finish().as_ref());
    key
}
