//! Header rules of a proxy: hop-by-hop headers and credentials.

use std::sync::LazyLock;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, UPGRADE};
use plimsoll_gateway_dialect::Dialect;

use crate::assembly::config::Config;
use crate::http::error_response::ErrorResponse;
use crate::http::header_list::{HeaderList, headers_of};
use crate::upstream::Upstream;

static CREDENTIALS: HeaderList = LazyLock::new(|| headers_of("credentials"));
static HOP: HeaderList = LazyLock::new(|| headers_of("response-hop"));

/// Whether a header is one of [`CREDENTIALS`].
pub(crate) fn is_credential(name: &HeaderName) -> bool {
    CREDENTIALS.contains(name)
}

/// Credentials of a client that are forwarded to an upstream.
pub(crate) fn passed_on<'a>(
    headers: &'a HeaderMap,
    config: &'a Config,
    upstream: &Upstream,
) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
    let own = config.layers.auth.as_ref().map(|auth| &auth.header);
    let replaced = if upstream.key.is_some() { CREDENTIALS.len() - 1 } else { 0 };
    let names = CREDENTIALS[replaced..].iter().filter(move |name| Some(*name) != own);
    names.flat_map(|name| headers.get_all(name).iter().map(move |value| (name, value)))
}

/// Prepares the headers of a request in normal form for the upstream: removes the gateway's own
/// key, and replaces the client's credentials where the upstream has a key.
pub(crate) fn prepare_request(
    headers: &mut HeaderMap,
    config: &Config,
    upstream: &Upstream,
) -> Result<(), ErrorResponse> {
    headers.remove(UPGRADE);
    headers.remove(CONTENT_LENGTH);
    if let Some(auth) = &config.layers.auth {
        headers.remove(&auth.header);
    }
    if let Some(key) = &upstream.key {
        for name in &CREDENTIALS[..CREDENTIALS.len() - 1] {
            headers.remove(name);
        }
        set_credential(headers, upstream.dialect, key).ok_or_else(|| {
            ErrorResponse::bad_gateway("the upstream's key is not a valid header value")
        })?;
    }
    Ok(())
}

fn set_credential(headers: &mut HeaderMap, dialect: Dialect, key: &str) -> Option<()> {
    let (name, mut value) = match dialect {
        Dialect::OpenAi => (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}")).ok()?),
        Dialect::Anthropic => {
            (HeaderName::from_static("x-api-key"), HeaderValue::try_from(key).ok()?)
        }
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

/// Removes the hop-by-hop headers of a response, and those that `connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let lines = headers.get_all(CONNECTION).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    // The two usual ones need no search: `keep-alive` is in `HOP`, and `close` is not a header.
    let listed = names.map(<[u8]>::trim_ascii).filter(|name| {
        !(name.eq_ignore_ascii_case(b"keep-alive") || name.eq_ignore_ascii_case(b"close"))
    });
    let listed: Vec<_> = listed.filter_map(|name| HeaderName::from_bytes(name).ok()).collect();
    for name in listed.iter().chain(HOP.iter()) {
        headers.remove(name);
    }
}
