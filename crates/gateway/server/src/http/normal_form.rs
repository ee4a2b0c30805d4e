//! The normal form of a request, decided once, before its route is looked up.
//!
//! Routing, judging and forwarding all use this form, so that no other spelling of a request can
//! bypass a rule. Two principles:
//!
//! - Equivalent spellings (RFC 3986 and RFC 9110) are rewritten to one of them.
//! - Requests that servers interpret differently have no normal form and are refused with status
//!   400: dot segments, empty segments, encoded slashes, two lengths, two hosts.
//!
//! A request in normal form costs one scan of its path and one of its header names, without
//! allocation. The parts: [`path`], [`query`] and [`host`] check texts; [`WireInspector`] checks
//! the bytes of HTTP/1.1 heads for faults that the HTTP library silently removes or corrects.

mod headers;
mod host;
mod path;
mod query;
mod wire;

use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{HeaderMap, Method, Request, Uri, Version};

pub(crate) use headers::{OwnedHeaders, dashed, is_configurable};
pub use host::host;
pub(crate) use path::decoded;
pub use path::{is_normal_template, path};
pub use query::query;
pub use wire::{WireFault, WireInspector};

/// Why a request has no normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Machine-readable and stable across versions: `invalid_path`.
    pub code: &'static str,
    /// Human-readable. It repeats nothing of the request.
    pub message: &'static str,
}

/// Makes a constructor for each code.
macro_rules! refusals {
    ($($name:ident => $code:literal;)*) => {
        impl Refusal {
            $(pub(crate) const fn $name(message: &'static str) -> Self {
                Self { code: $code, message }
            })*
        }
    };
}

refusals! {
    method => "invalid_method";
    target => "invalid_target";
    path => "invalid_path";
    query => "invalid_query";
    host => "invalid_host";
    header => "invalid_header";
    framing => "invalid_framing";
}

impl From<WireFault> for Refusal {
    fn from(fault: WireFault) -> Self {
        match fault {
            WireFault::BareLineFeed => Self::framing("end lines with CR and LF"),
            WireFault::FoldedLine => Self::framing("write each header on one line"),
            WireFault::Fragment => Self::target("the target has a fragment (`#`)"),
            WireFault::Lengths => Self::framing("the head has two lengths, or a malformed one"),
            WireFault::Coding => Self::framing("the only supported transfer coding is `chunked`"),
            WireFault::LostFraming => Self::framing("the previous body was malformed"),
        }
    }
}

/// Brings a request into its normal form.
///
/// # Errors
/// It has no normal form.
pub(crate) fn normalise<B>(request: &mut Request<B>, owned: &OwnedHeaders) -> Result<(), Refusal> {
    method(request.method())?;
    let version = request.version();
    let named = headers::single_host(request.headers())?;
    target(request.uri(), request.version(), named)?;
    if let Some(uri) = rewritten(request.uri(), version < Version::HTTP_2)? {
        *request.uri_mut() = uri;
    }
    let may_upgrade = request.method() == Method::GET && version == Version::HTTP_11;
    headers::normalise(request.headers_mut(), owned, version, may_upgrade)
}

/// Standard methods, and extension methods in upper case. `CONNECT` requests a tunnel and `TRACE`
/// an echo of the head including keys; the gateway supports neither.
fn method(method: &Method) -> Result<(), Refusal> {
    if matches!(
        *method,
        Method::GET
            | Method::POST
            | Method::HEAD
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::OPTIONS
    ) {
        return Ok(());
    }
    if *method == Method::CONNECT || *method == Method::TRACE {
        return Err(Refusal::method("CONNECT and TRACE are not served"));
    }
    let name = method.as_str().as_bytes();
    let is_plain = name.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
    if is_plain && name.len() <= 32 {
        Ok(())
    } else {
        Err(Refusal::method("write the method in upper case letters"))
    }
}

/// Checks the form of the target and the host that it names.
fn target(uri: &Uri, version: Version, named: Option<&[u8]>) -> Result<(), Refusal> {
    if let Some(named) = named {
        host(named)?;
    }
    match (uri.scheme(), uri.authority()) {
        // HTTP/2 requests may name the host in a header only, too.
        (None, None) => {}
        (Some(scheme), Some(authority)) if is_web(scheme) => check_authority(authority, named)?,
        _ => return Err(Refusal::target("send a path that starts with a slash, or a whole URL")),
    }
    let has_host = match version {
        Version::HTTP_09 | Version::HTTP_10 => true,
        // With a whole URL, HTTP/1.1 still requires the header (RFC 9112, 3.2.2).
        Version::HTTP_11 => named.is_some(),
        _ => named.is_some() || uri.authority().is_some(),
    };
    if !has_host {
        return Err(Refusal::host("name the host, once"));
    }
    Ok(())
}

fn is_web(scheme: &Scheme) -> bool {
    *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS
}

/// The host of an absolute URL, or of `:authority`, must equal the header `host`.
fn check_authority(authority: &Authority, named: Option<&[u8]>) -> Result<(), Refusal> {
    let text = authority.as_str().as_bytes();
    host(text)?;
    match named {
        Some(named) if !named.eq_ignore_ascii_case(text) => {
            Err(Refusal::host("the target and the header `host` name different hosts"))
        }
        _ => Ok(()),
    }
}

/// The normal form of a target; `None` if it is normal already.
fn rewritten(uri: &Uri, is_http1: bool) -> Result<Option<Uri>, Refusal> {
    let text = uri.query();
    if let Some(text) = text {
        query(text)?;
    }
    let changed = path(uri.path())?;
    let has_host = is_http1 && uri.authority().is_some();
    if changed.is_none() && !has_host {
        return Ok(None);
    }
    let mut whole = changed.unwrap_or_else(|| uri.path().to_owned());
    if let Some(text) = text {
        whole.push('?');
        whole.push_str(text);
    }
    PathAndQuery::try_from(whole)
        .map(|target| Some(Uri::from(target)))
        .map_err(|_| Refusal::target("the target is not a URL"))
}

/// Whether the client requests a `WebSocket`; only for requests in normal form.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    headers.contains_key(hyper::header::UPGRADE)
}

#[cfg(test)]
mod tests;
