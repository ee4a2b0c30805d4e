//! Headers that describe a body: its type and its encoding.

use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, IF_RANGE, RANGE,
};

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
