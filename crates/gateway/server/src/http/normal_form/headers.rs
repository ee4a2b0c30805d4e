//! The normal form of the headers: which are allowed, how often, and which are not forwarded.

use std::sync::LazyLock;

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::{HeaderMap, Version};

use super::Refusal;
use crate::http::header_list::{HeaderList, headers_of};

static SINGLE: HeaderList = LazyLock::new(|| headers_of("single"));
static KEPT: HeaderList = LazyLock::new(|| headers_of("kept"));
static HOP: HeaderList = LazyLock::new(|| headers_of("hop"));
static FRAMING: HeaderList = LazyLock::new(|| headers_of("framing"));
static OVERRIDES: HeaderList = LazyLock::new(|| headers_of("overrides"));

/// Most options of `connection`: each costs a look-up in all lists.
const MAX_OPTIONS: usize = 16;

/// Whether a layer may be configured to read a header: it must not frame the message, be hop-by-hop
/// or be forbidden.
pub(crate) fn is_configurable(name: &HeaderName) -> bool {
    ![&FRAMING, &HOP, &OVERRIDES].iter().any(|list| list.contains(name))
}

/// The headers that this gateway reads or sets, by its configuration.
#[derive(Debug)]
pub(crate) struct OwnedHeaders {
    /// At most one of each may occur.
    single: Vec<HeaderName>,
}

impl OwnedHeaders {
    /// The built-in headers of every gateway, and the configured ones.
    pub(crate) fn new(configured: impl IntoIterator<Item = HeaderName>) -> Self {
        let mut single = SINGLE.clone();
        for name in configured {
            if !single.contains(&name) {
                single.push(name);
            }
        }
        Self { single }
    }

    /// Whether a header is end-to-end.
    fn keeps(&self, name: &HeaderName) -> bool {
        self.single.iter().chain(KEPT.iter()).any(|kept| kept == name)
    }

    /// Whether a name, written with dashes, is equivalent to one of these headers.
    fn has_twin(&self, dashed: &str) -> bool {
        self.single.iter().chain(KEPT.iter()).any(|kept| kept.as_str() == dashed)
    }
}

/// A name in the form of servers that pass headers as environment variables, where `-` becomes `_`,
/// and other signs, too, in some servers. `None` if the name has that form already.
pub(crate) fn dashed(name: &str) -> Option<String> {
    // The names of headers are ASCII in lower case.
    let is_sign = |letter: char| !matches!(letter, 'a'..='z' | '0'..='9' | '-');
    name.bytes().any(|byte| is_sign(char::from(byte))).then(|| name.replace(is_sign, "-"))
}

/// The value of `host`.
///
/// # Errors
/// There are two.
pub(super) fn single_host(headers: &HeaderMap) -> Result<Option<&[u8]>, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let first = hosts.next();
    match hosts.next() {
        None => Ok(first.map(HeaderValue::as_bytes)),
        Some(_) => Err(Refusal::host("name the host, once")),
    }
}

/// Checks the headers, and removes the hop-by-hop ones. `upgrade` stays for a `WebSocket` only.
pub(super) fn normalise(
    headers: &mut HeaderMap,
    owned: &OwnedHeaders,
    version: Version,
    may_upgrade: bool,
) -> Result<(), Refusal> {
    if headers.len() > headers.keys_len() {
        check_repeated(headers, owned, version < Version::HTTP_2)?;
    }
    if !scan(headers, owned)? {
        return Ok(());
    }
    check_framing(headers)?;
    let asks = headers.contains_key(CONNECTION) && remove_connection(headers, owned)?;
    if !(asks && may_upgrade && is_websocket(headers)) {
        headers.remove(UPGRADE);
    }
    for name in HOP.iter() {
        headers.remove(name);
    }
    Ok(())
}

/// Checks every name once. Returns whether one of them is hop-by-hop.
fn scan(headers: &HeaderMap, owned: &OwnedHeaders) -> Result<bool, Refusal> {
    let mut ends_here = false;
    for name in headers.keys() {
        let text = name.as_str();
        match text.as_bytes() {
            [b'x', b'-', ..] if OVERRIDES.contains(name) => {
                let message = "headers that override the path or the method are rejected";
                return Err(Refusal::header(message));
            }
            [b'c', b'o', b'n', b'n', ..] => ends_here |= *name == CONNECTION,
            [b'u', b'p', ..] => ends_here |= *name == UPGRADE,
            // The first letters of all other hop-by-hop headers.
            [b't' | b'e' | b'k' | b'p', ..] | [b'h', b't', ..] => ends_here |= HOP.contains(name),
            _ => {}
        }
        if let Some(dashed) = dashed(text)
            && (owned.has_twin(&dashed) || OVERRIDES.iter().any(|name| *name == *dashed))
        {
            return Err(Refusal::header("write `-` instead of `_` in the names of headers"));
        }
    }
    Ok(ends_here)
}

fn is_repeated(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}

fn check_repeated(
    headers: &mut HeaderMap,
    owned: &OwnedHeaders,
    is_http1: bool,
) -> Result<(), Refusal> {
    if owned.single.iter().any(|name| is_repeated(headers, name)) {
        return Err(Refusal::header("this header may appear only once"));
    }
    if !is_repeated(headers, &COOKIE) {
        return Ok(());
    }
    if is_http1 {
        return Err(Refusal::header("send one header `cookie`"));
    }
    // HTTP/2 may split it; before it goes to an HTTP/1.1 server it is joined (RFC 9113, 8.2.3).
    let crumbs: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let cookie = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]));
    let cookie = cookie.map_err(|_| Refusal::header("the header `cookie` is malformed"))?;
    headers.insert(COOKIE, cookie);
    Ok(())
}

/// The library rejects lengths that are not numbers, and codings that do not end in `chunked`.
fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(TRANSFER_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            Err(Refusal::framing("the only supported transfer coding is `chunked`"))
        }
        Some(_) if headers.contains_key(CONTENT_LENGTH) => {
            Err(Refusal::framing("the head has two lengths"))
        }
        _ => check_expect(headers),
    }
}

fn check_expect(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(EXPECT) {
        Some(value) if !value.as_bytes().eq_ignore_ascii_case(b"100-continue") => {
            Err(Refusal::header("the only supported expectation is `100-continue`"))
        }
        _ => Ok(()),
    }
}

/// Removes `connection` and the headers that it names. Returns whether it requests an upgrade.
fn remove_connection(headers: &mut HeaderMap, owned: &OwnedHeaders) -> Result<bool, Refusal> {
    let lines: Vec<HeaderValue> = headers.get_all(CONNECTION).iter().cloned().collect();
    let mut upgrades = false;
    let count = lines.iter().map(|line| memchr::memchr_iter(b',', line.as_bytes()).count() + 1);
    if count.sum::<usize>() > MAX_OPTIONS {
        return Err(Refusal::header("the header `connection` has too many options"));
    }
    for option in lines.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')) {
        let option = option.trim_ascii();
        if option.eq_ignore_ascii_case(b"upgrade") {
            upgrades = true;
        } else if !(option.is_empty()
            || option.eq_ignore_ascii_case(b"close")
            || option.eq_ignore_ascii_case(b"keep-alive"))
        {
            let name = HeaderName::from_bytes(option)
                .map_err(|_| Refusal::header("the header `connection` is malformed"))?;
            if owned.keeps(&name) && !HOP.contains(&name) {
                let message = "the header `connection` names an end-to-end header";
                return Err(Refusal::header(message));
            }
            headers.remove(name);
        }
    }
    headers.remove(CONNECTION);
    Ok(upgrades)
}

/// Whether the request may become a `WebSocket`: it requests no other upgrade, and has no body.
fn is_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && !headers.contains_key(TRANSFER_ENCODING)
        && headers.get(CONTENT_LENGTH).is_none_or(|length| length.as_bytes() == b"0")
}
