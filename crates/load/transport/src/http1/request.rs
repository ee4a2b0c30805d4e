//! Request heads: rendered once, patched for every request.

use std::sync::{Arc, OnceLock};

use crate::http2::Fields;

/// The part of a request head that all requests of one kind share, already in wire format.
#[derive(Clone, Debug)]
pub struct RequestHead {
    bytes: Vec<u8>,
    is_head: bool,
    always_length: bool,
    origin: String,
    /// The same for HTTP/2, made when it is first asked for.
    http2: OnceLock<Arc<Fields>>,
}

/// A method, path or header that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestHeadError {
    /// The method is empty or has characters other than those of a token.
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// The path has spaces or control characters; percent-encode them.
    #[error("the path `{0}` has a space or control character: percent-encode it")]
    Path(String),
    /// The header's name is empty or has characters other than those of a token.
    #[error("`{0}` is not a header name")]
    HeaderName(String),
    /// The header's value has a line break or another control character. The value is not shown.
    #[error("the value of header `{0}` has a line break or control character")]
    HeaderValue(String),
}

impl RequestHead {
    /// Renders the request line, `host` and `headers` for a target of the given origin, like `http://host:80`.
    ///
    /// # Errors
    /// Whatever would let a caller smuggle a second header or request is refused.
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
        let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
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
        let (origin, is_head) = (origin.to_owned(), method == "HEAD");
        Ok(Self { bytes, is_head, always_length, origin, http2: OnceLock::new() })
    }

    /// Writes the head of one request: the shared part, `x-request-id` and `content-length`.
    pub fn render(&self, request_id: Option<&str>, body_len: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
        if let Some(id) = request_id {
            out.extend_from_slice(b"x-request-id: ");
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if let Some(length) = self.content_length(body_len) {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The shared part in HTTP/2's terms, the same one at every call.
    pub fn fields(&self) -> &Arc<Fields> {
        self.http2.get_or_init(|| {
            let scheme = self.origin.split_once("://").map_or("http", |(scheme, _)| scheme);
            Arc::new(Fields::translate(scheme, &self.bytes))
        })
    }

    /// The `content-length` that a request with a body of so many bytes announces, if any.
    pub const fn content_length(&self, body_len: usize) -> Option<usize> {
        if body_len > 0 || self.always_length { Some(body_len) } else { None }
    }

    /// Is it a `HEAD` request, whose response has no body?
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_rendered_with_its_patched_slots() {
        let head =
            RequestHead::new("POST", "/v1/x", "http://a:1", [("accept", "text/plain")]).unwrap();
        let mut out = Vec::new();
        head.render(Some("id-7"), 12, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /v1/x HTTP/1.1\r\naccept: text/plain\r\nhost: a:1\r\nx-request-id: id-7\r\ncontent-length: 12\r\n\r\n"
        );
    }

    #[test]
    fn a_get_without_a_body_has_no_length_and_an_own_host_replaces_ours() {
        let head = RequestHead::new("GET", "/", "http://a:1", [("Host", "b")]).unwrap();
        let mut out = Vec::new();
        head.render(None, 0, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "GET / HTTP/1.1\r\nHost: b\r\n\r\n");
    }

    #[test]
    fn http_2_gets_the_same_head_in_its_own_terms() {
        let headers = [("Accept", "text/plain"), ("connection", "close")];
        let head = RequestHead::new("POST", "/v1/x?y=1", "https://a:1", headers).unwrap();
        let lines: Vec<_> = head
            .fields()
            .iter()
            .map(|(name, value)| {
                [name, value].map(|text| String::from_utf8_lossy(text).into_owned())
            })
            .collect();
        let expected = [
            [":method", "POST"],
            [":scheme", "https"],
            [":authority", "a:1"],
            [":path", "/v1/x?y=1"],
            ["accept", "text/plain"],
        ];
        assert_eq!(
            (lines, head.content_length(12)),
            (expected.map(|line| line.map(str::to_owned)).to_vec(), Some(12))
        );
        assert!(Arc::ptr_eq(head.fields(), head.fields()));
    }

    #[test]
    fn whatever_could_smuggle_a_line_is_refused() {
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
