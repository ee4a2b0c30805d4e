//! Header rules of a proxy: hop-by-hop headers and credentials.

use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    HeaderName, HeaderValue, IF_RANGE, RANGE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
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

/// Asks for a response that can be read: whole and not encoded.
pub(crate) fn ask_for_readable(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.remove(RANGE);
    headers.remove(IF_RANGE);
}

/// Whether a body is encoded, such as compressed.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let mut codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| !coding.trim_ascii().eq_ignore_ascii_case(b"identity"))
}

/// Whether a response is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().trim_ascii_start());
    kind.and_then(|kind| kind.get(..EVENTS.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(EVENTS))
}
