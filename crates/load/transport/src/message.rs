//! Requests and responses, independent of the HTTP version.

use std::ops::ControlFlow;
use std::sync::Arc;

use httparse::Header;
use plimsoll_measure::{Moment, Nanos};

use crate::buffers::EncodedRequest;
use crate::rx_timestamp::RxTime;

/// One request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The head shared with other requests of its kind.
    pub head: &'a RequestHead,
    /// Its `x-request-id`.
    pub id: Option<&'a [u8]>,
    /// Its bytes.
    pub encoded: EncodedRequest,
    /// Whether a busy worker may send it slightly later, together with others; not if its send time
    /// is planned.
    pub may_wait: bool,
}

/// Status and headers of a response.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status code.
    pub status: u16,
    /// The header lines in order.
    pub headers: &'a [Header<'a>],
}

impl ResponseHead<'_> {
    /// The value of the first header with that name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    }

    /// The value of `content-type`, unparsed.
    #[inline]
    pub fn content_type(&self) -> Option<&[u8]> {
        let header = self.headers.iter().find(|header| is_named(header.name, b"content-type"))?;
        Some(header.value)
    }
}

/// Observes an exchange as it happens.
pub trait ResponseHandler {
    /// The last byte of the request was passed to the kernel. Its buffers are returned, so that the
    /// next request can use them while this one waits for its response.
    fn sent(&mut self, at: Moment, encoded: EncodedRequest);
    /// A read returned `bytes` bytes (of plaintext) of the response.
    fn received(&mut self, bytes: usize, rx_time: RxTime);
    /// The final head of the response.
    fn head(&mut self, head: &ResponseHead<'_>);
    /// Bytes of the body. `Break` means that the rest of the response is not needed.
    fn body(&mut self, bytes: &[u8], at: Moment) -> ControlFlow<()>;
    /// HTTP/2: the request waited this long for the target's flow-control windows or stream limit.
    fn send_stalled(&mut self, _waited: Nanos) {}
    /// HTTP/2: our own window was so full that it may have delayed the target.
    fn receive_stalled(&mut self) {}
}

/// The part of a request head that all requests of one kind share, already in wire format.
///
/// Clones share their bytes. Code that caches something derived from a head, such as HTTP/2's
/// compressed form, identifies it by its shared bytes.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Request line and headers in the format of HTTP/1.1.
    shared: Arc<[u8]>,
    is_head: bool,
    always_length: bool,
    scheme: &'static str,
}

/// A method, path or header that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestHeadError {
    /// The method is empty or has characters that a token must not have.
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// The path has spaces or control characters; percent-encode them.
    #[error("the path `{0}` has a space or control character: percent-encode it")]
    Path(String),
    /// The header's name is empty or has characters that a token must not have.
    #[error("`{0}` is not a header name")]
    HeaderName(String),
    /// The header's value has a line break or another control character. The value is not shown.
    #[error("the value of header `{0}` has a line break or control character")]
    HeaderValue(String),
}

impl RequestHead {
    /// Renders the request line, `host` and `headers` for a target with the given origin, such as
    /// `http://host:80`.
    ///
    /// # Errors
    /// Any input that could smuggle a second header or request.
    pub fn new<'h>(
        method: &str,
        path: &str,
        origin: &str,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    ) -> Result<Self, RequestHeadError> {
        if !is_token(method) {
            return Err(RequestHeadError::Method(method.to_owned()));
        }
        if path.is_empty() || !path.bytes().all(|b| b.is_ascii_graphic() || b >= 0x80) {
            return Err(RequestHeadError::Path(path.to_owned()));
        }
        let (scheme, authority) = origin.split_once("://").unwrap_or(("http", origin));
        let scheme = if scheme == "https" { "https" } else { "http" };
        let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        let mut has_host = false;
        for (name, value) in headers {
            has_host |= name.eq_ignore_ascii_case("host");
            push_header(&mut bytes, name, value)?;
        }
        if !has_host {
            push_header(&mut bytes, "host", authority)?;
        }
        let always_length = matches!(method, "POST" | "PUT" | "PATCH");
        Ok(Self { shared: bytes.into(), is_head: method == "HEAD", always_length, scheme })
    }

    /// Writes the head of one request: the shared part, `x-request-id` and `content-length`.
    pub fn render(&self, request_id: Option<&[u8]>, body_len: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.shared);
        if let Some(id) = request_id {
            out.extend_from_slice(b"x-request-id: ");
            out.extend_from_slice(id);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(length) = self.content_length(body_len) {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes the head of a request without a body and with one additional header.
    pub(crate) fn render_with(
        &self,
        request_id: Option<&[u8]>,
        name: &str,
        value: &[u8],
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&self.shared);
        let id = request_id.map(|id| ("x-request-id", id));
        for (name, value) in id.into_iter().chain([(name, value)]) {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The shared part in the format of HTTP/1.1: the request line and header lines.
    pub(crate) const fn shared(&self) -> &Arc<[u8]> {
        &self.shared
    }

    /// `http` or `https`.
    pub(crate) const fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// The `content-length` of a request with a body of `body_len` bytes, if it has one.
    pub const fn content_length(&self, body_len: usize) -> Option<usize> {
        if body_len > 0 || self.always_length { Some(body_len) } else { None }
    }

    /// Whether it is a `HEAD` request, whose response has no body.
    pub const fn is_head(&self) -> bool {
        self.is_head
    }
}

fn push_header(bytes: &mut Vec<u8>, name: &str, value: &str) -> Result<(), RequestHeadError> {
    if !is_token(name) {
        return Err(RequestHeadError::HeaderName(name.to_owned()));
    }
    if value.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7f) {
        return Err(RequestHeadError::HeaderValue(name.to_owned()));
    }
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    Ok(())
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

// Case-insensitive comparison of header names (RFC 9110, 5.1).

/// Whether a header has this lowercase name.
///
/// A name has only letters, digits and some other characters (RFC 9110, 5.6.2). Setting the
/// lowercase bit changes only letters into a lowercase letter, a digit or a hyphen.
#[inline]
pub(crate) fn is_named<const N: usize>(name: &str, lower: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name.as_bytes()) else { return false };
    name.iter().zip(lower).fold(0, |differs, (byte, lower)| differs | ((byte | 0x20) ^ lower)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_rendered_with_the_fields_of_one_request() {
        let head =
            RequestHead::new("POST", "/v1/x", "http://a:1", [("accept", "text/plain")]).unwrap();
        let mut out = Vec::new();
        head.render(Some(b"id-7"), 12, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /v1/x HTTP/1.1\r\naccept: text/plain\r\nhost: a:1\r\nx-request-id: id-7\r\ncontent-length: 12\r\n\r\n"
        );
    }

    #[test]
    fn a_get_has_no_length_and_a_given_host_replaces_the_default() {
        let head = RequestHead::new("GET", "/", "http://a:1", [("Host", "b")]).unwrap();
        let mut out = Vec::new();
        head.render(None, 0, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "GET / HTTP/1.1\r\nHost: b\r\n\r\n");
    }

    #[test]
    fn input_that_could_smuggle_a_line_is_rejected() {
        let new = |method, path, header| RequestHead::new(method, path, "http://a", [header]).err();
        let plain = ("a", "b");
        assert!(matches!(new("GE T", "/", plain), Some(RequestHeadError::Method(_))));
        assert!(matches!(new("", "/", plain), Some(RequestHeadError::Method(_))));
        assert!(matches!(new("GET", "/a b", plain), Some(RequestHeadError::Path(_))));
        assert!(matches!(new("GET", "/\r\nx: y", plain), Some(RequestHeadError::Path(_))));
        assert!(matches!(new("GET", "/", ("a b", "c")), Some(RequestHeadError::HeaderName(_))));
        assert!(matches!(
            new("GET", "/", ("a", "b\r\nc: d")),
            Some(RequestHeadError::HeaderValue(_))
        ));
    }
}

#[cfg(test)]
mod header_name_tests {
    use super::*;

    #[test]
    fn names_are_equal_in_any_case() {
        for name in ["content-length", "Content-Length", "CONTENT-LENGTH"] {
            assert!(is_named(name, b"content-length"), "{name}");
        }
        for name in ["content-lengtH1", "content-lengt", "content_length", "content.length", ""] {
            assert!(!is_named(name, b"content-length"), "{name}");
        }
    }

    #[test]
    fn no_other_character_of_a_name_passes_for_one_of_ours() {
        for byte in
            (0..=255).filter(|b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
        {
            for lower in (b'a'..=b'z').chain(b'0'..=b'9').chain([b'-']) {
                let name = char::from(byte).to_string();
                let same = byte.to_ascii_lowercase() == lower;
                assert_eq!(is_named(&name, &[lower]), same, "{name} {}", char::from(lower));
            }
        }
    }
}
