//! Header rules of a proxy: hop-by-hop headers and credentials.

use hyper::HeaderMap;
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use crate::config::Config;
use crate::error_response::ErrorResponse;
use crate::spec::DialectSpec;
use crate::upstream::Upstream;

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Prepares the headers of a request for the upstream: removes those of this hop (RFC 9110, 7.6.1)
/// and the gateway's own key, and replaces the client's credential where the upstream has a key.
pub(crate) fn prepare_request(
    headers: &mut HeaderMap,
    config: &Config,
    upstream: &Upstream,
) -> Result<(), ErrorResponse> {
    remove_hop_by_hop(headers);
    headers.remove(CONTENT_LENGTH);
    if let Some(auth) = &config.auth {
        headers.remove(auth.header());
    }
    if let Some(key) = &upstream.key {
        set_credential(headers, upstream.dialect, key).ok_or_else(|| {
            ErrorResponse::bad_gateway("the upstream's key is not a header value")
        })?;
    }
    Ok(())
}

fn set_credential(headers: &mut HeaderMap, dialect: DialectSpec, key: &str) -> Option<()> {
    let (name, mut value) = match dialect {
        DialectSpec::Openai => {
            (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}")).ok()?)
        }
        DialectSpec::Anthropic => {
            (HeaderName::from_static("x-api-key"), HeaderValue::try_from(key).ok()?)
        }
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

/// Removes the hop-by-hop headers, and those that `connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<_> = headers.get_all(CONNECTION).iter().cloned().collect();
    for name in listed.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')) {
        if let Ok(name) = HeaderName::from_bytes(name.trim_ascii()) {
            headers.remove(name);
        }
    }
    headers.remove(CONNECTION);
    for name in [&KEEP_ALIVE, &PROXY_CONNECTION, &TE, &TRAILER, &TRANSFER_ENCODING, &UPGRADE] {
        headers.remove(name);
    }
}
