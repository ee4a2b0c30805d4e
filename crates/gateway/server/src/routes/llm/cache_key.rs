//! The key of a cached response: everything that can change the response.
//!
//! One function makes it from the caller (the tenant, and the forwarded credential), the upstream,
//! the endpoint with its query, every member of the body, and every forwarded header, except for
//! headers that are known not to affect answers. It includes the gateway's own changes to answers:
//! after a reload that enables scrubbing, no earlier answer is served.

use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use hyper::HeaderMap;
use hyper::header::{
    CACHE_CONTROL, EXPIRES, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_RANGE, IF_UNMODIFIED_SINCE, PRAGMA, RANGE, VARY,
};
use hyper::http::request::Parts;
use plimsoll_gateway_dialect::{DialectError, Endpoint, write_cache_key};
use plimsoll_gateway_store::CacheKey;
use ring::digest::{Context, SHA256};

use crate::assembly::config::Config;
use crate::base::clock;
use crate::exchange::headers::is_credential;
use crate::http::header_list::{HeaderList, headers_of};
use crate::layers::auth::bytes_of;
use crate::layers::identity::Identity;
use crate::layers::tenant::TenantRule;
use crate::upstream::Upstream;

/// The digest of a body's members and its endpoint, independent of spelling.
pub(super) type BodyKey = [u8; 32];

/// Any other forwarded header may identify the caller.
static HARMLESS: HeaderList = LazyLock::new(|| headers_of("harmless"));

/// The digest of a body.
///
/// # Errors
/// As [`write_cache_key`].
pub(super) fn body_key(endpoint: Endpoint, body: &[u8]) -> Result<BodyKey, DialectError> {
    let mut hash = Context::new(&SHA256);
    write_cache_key(endpoint, body, |bytes| hash.update(bytes))?;
    Ok(bytes_of(&hash.finish()))
}

/// The key of the response to a request.
pub(super) fn response_key(
    config: &Config,
    identity: &Identity,
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
    CacheKey(bytes_of(&hash.finish()))
}

/// Whether a request must bypass the cache: a range request, a conditional request, or `no-cache`.
pub(super) fn prevents_caching(headers: &HeaderMap) -> bool {
    let conditional =
        [RANGE, IF_RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE];
    let control = CacheControl::read(headers, &CACHE_CONTROL);
    conditional.iter().any(|name| headers.contains_key(name))
        || control.has(&["no-store", "no-cache"])
        || control.seconds("max-age") == Some(0)
        || (control.is_empty() && says_no_cache(headers))
}

/// Cache directives for intermediaries (RFC 9213, Edge Architecture).
static TARGETED: [HeaderName; 2] =
    [HeaderName::from_static("cdn-cache-control"), HeaderName::from_static("surrogate-control")];

/// How long an answer with these headers may be shared, up to a maximum; `None` if it must not be
/// shared (RFC 9111).
pub(super) fn lifetime(headers: &HeaderMap, most: Duration) -> Option<Duration> {
    let control = CacheControl::read(headers, &CACHE_CONTROL);
    let targeted = TARGETED.each_ref().map(|name| CacheControl::read(headers, name));
    let is_forbidden = control.has(&["no-store", "no-cache", "private"])
        || targeted.iter().any(|control| control.has(&["no-store", "no-cache", "private"]))
        || (control.is_empty() && says_no_cache(headers))
        || varies(headers);
    if is_forbidden {
        return None;
    }
    let stated = control.seconds("s-maxage").or_else(|| control.seconds("max-age"));
    let lifetime = match stated {
        Some(seconds) => Some(seconds),
        None => headers.get(EXPIRES).map(expires_in),
    };
    let Some(lifetime) = lifetime else { return Some(most) };
    let age = headers.get("age").and_then(|age| age.to_str().ok()?.trim().parse().ok());
    let left = Duration::from_secs(lifetime.saturating_sub(age.unwrap_or(0)));
    Some(left.min(most)).filter(|left| !left.is_zero())
}

/// The seconds until a time; 0 for an invalid time, as in other caches.
fn expires_in(value: &HeaderValue) -> u64 {
    let due = value.to_str().ok().and_then(|text| httpdate::parse_http_date(text.trim()).ok());
    let due = due.and_then(|due| due.duration_since(UNIX_EPOCH).ok());
    due.map_or(0, |due| due.as_secs().saturating_sub(clock::unix_ms() / 1_000))
}

/// `pragma: no-cache`, which counts only without `cache-control`.
fn says_no_cache(headers: &HeaderMap) -> bool {
    headers.get_all(PRAGMA).iter().any(|value| {
        String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase().contains("no-cache")
    })
}

/// Whether an answer depends on a header outside the key.
fn varies(headers: &HeaderMap) -> bool {
    headers.get_all(VARY).iter().any(|value| {
        let names = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        // Upstreams are asked not to encode answers.
        let mut names = names.split(',').map(str::trim).filter(|name| *name != "accept-encoding");
        names.any(|name| name == "*" || is_harmless(name))
    })
}

/// The directives of `cache-control`.
struct CacheControl(String);

impl CacheControl {
    /// The directives of a header with the syntax of `cache-control`.
    fn read(headers: &HeaderMap, name: &HeaderName) -> Self {
        let values = headers.get_all(name).iter();
        let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
        Self(values.collect::<Vec<_>>().join(",").to_ascii_lowercase())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values.
    fn directives(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split(',').map(|one| {
            let (name, value) = one.split_once('=').unwrap_or((one, ""));
            (name.trim(), value.trim().trim_matches('"'))
        })
    }

    fn has(&self, names: &[&str]) -> bool {
        self.directives().any(|(name, _)| names.contains(&name))
    }

    /// The smallest value of a directive; an invalid number counts as 0.
    fn seconds(&self, wanted: &str) -> Option<u64> {
        let values = self.directives().filter(|(name, _)| *name == wanted);
        values.map(|(_, value)| value.parse().unwrap_or(0)).min()
    }
}

/// The forwarded headers that may affect the answer, sorted by name, without those of the identity:
/// credentials, and the tenant's name.
fn shaping<'h>(config: &Config, headers: &'h HeaderMap) -> Vec<(&'h HeaderName, &'h [u8])> {
    let own = [
        config.layers.auth.as_ref().map(|auth| &auth.header),
        config.layers.tenant.as_ref().map(TenantRule::header),
        config.request_id(),
    ];
    let mut shaping: Vec<_> = headers
        .iter()
        .filter(|(name, _)| {
            !(own.contains(&Some(*name)) || is_credential(name) || is_harmless(name.as_str()))
        })
        .map(|(name, value)| (name, value.as_bytes()))
        .collect();
    shaping.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    shaping
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.iter().any(|harmless| harmless == name)
}

fn update(hash: &mut Context, part: &[u8]) {
    hash.update(&(part.len() as u64).to_be_bytes());
    hash.update(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn an_answer_is_kept_as_long_as_it_says() {
        const MOST: u64 = 600;
        for (lines, expected) in [
            (&[][..], Some(MOST)),
            (&[("cache-control", "max-age=60")], Some(60)),
            (&[("cache-control", "max-age=9000")], Some(MOST)),
            (&[("cache-control", "Max-Age=\"60\"")], Some(60)),
            (&[("cache-control", "max-age=60, s-maxage=5")], Some(5)),
            (&[("cache-control", "max-age=60"), ("age", "20")], Some(40)),
            (&[("cache-control", "max-age=60"), ("age", "60")], None),
            (&[("cache-control", "max-age=0")], None),
            (&[("cache-control", "max-age=x")], None),
            (&[("cache-control", "public"), ("cache-control", "NO-STORE")], None),
            (&[("cache-control", "private=\"x\"")], None),
            (&[("expires", "0")], None),
            (&[("expires", "Thu, 01 Jan 1970 00:00:00 GMT")], None),
            (&[("expires", "Fri, 31 Dec 2100 23:59:59 GMT")], Some(MOST)),
            (&[("expires", "0"), ("cache-control", "max-age=7")], Some(7)),
            (&[("pragma", "no-cache")], None),
            (&[("pragma", "no-cache"), ("cache-control", "max-age=7")], Some(7)),
            (&[("vary", "*")], None),
            (&[("vary", "Accept-Encoding, Origin")], Some(MOST)),
            (&[("vary", "accept-language, traceparent")], None),
        ] {
            let kept = lifetime(&headers(lines), Duration::from_secs(MOST));
            assert_eq!(kept.map(|kept| kept.as_secs()), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_question_may_pass_the_cache_by() {
        for (lines, passes) in [
            (&[][..], false),
            (&[("cache-control", "max-age=60")], false),
            (&[("cache-control", "max-age=0")], true),
            (&[("cache-control", "no-cache")], true),
            (&[("pragma", "no-cache")], true),
            (&[("pragma", "no-cache"), ("cache-control", "max-age=60")], false),
            (&[("range", "bytes=0-1")], true),
        ] {
            assert_eq!(prevents_caching(&headers(lines)), passes, "{lines:?}");
        }
    }
}
