//! Request heads: rendered once, patched for every request.

use std::sync::OnceLock;

use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};

/// The part of a request head that all requests of one kind share, already in wire format.
#[derive(Clone, Debug)]
pub struct RequestHead {
    bytes: Vec<u8>,
    is_head: bool,
    always_length: bool,
    origin: String,
    /// The same for HTTP/2, made when it is first asked for.
    http2: OnceLock<Result<http::Request<()>, String>>,
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
        if body_len > 0 || self.always_length {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(body_len).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The head of one request in HTTP/2's terms.
    pub(crate) fn http2(
        &self,
        request_id: Option<&str>,
        body_len: usize,
    ) -> Result<http::Request<()>, String> {
        let shared = self.http2.get_or_init(|| {
            translate(&self.origin, &self.bytes).map_err(|error| error.to_string())
        });
        let mut request = shared.clone()?;
        if let Some(id) = request_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            request.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
        }
        if body_len > 0 || self.always_length {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body_len));
        }
        Ok(request)
    }

    /// Is it a `HEAD` request, whose response has no body?
    pub const fn is_head(&self) -> bool {
        self.is_head
    }
}

/// Translates a rendered head: the request line becomes pseudo-headers, `host` the authority, and what concerns one
/// connection of HTTP/1.1 is left out (RFC 9113, section 8.2.2).
fn translate(origin: &str, bytes: &[u8]) -> Result<http::Request<()>, http::Error> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        headers.append(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
    }
    let scheme = origin.split_once("://").map_or("http", |(scheme, _)| scheme);
    let host = headers.remove(HOST);
    let authority =
        host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        headers.remove(name);
    }
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build()?;
    let mut request =
        http::Request::builder().method(Method::from_bytes(method.as_bytes())?).uri(uri).body(())?;
    *request.headers_mut() = headers;
    Ok(request)
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
        let request = head.http2(Some("id-7"), 12).unwrap();
        assert_eq!(
            (request.method().as_str(), request.uri().to_string().as_str()),
            ("POST", "https://a:1/v1/x?y=1")
        );
        let mut lines: Vec<_> = request
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        assert_eq!(lines, ["accept: text/plain", "content-length: 12", "x-request-id: id-7"]);
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
