//! The target's URL.
//!
//! Parsed here instead of by the `url` crate, because a load tool must send exactly the user's
//! text. `url` removes dot segments from the path (`/a/../b`), turns an empty path into `/`,
//! lowercases the host, rewrites IPv4 shorthands (`127.1`), drops line breaks, turns backslashes
//! into slashes, and accepts an empty port and port 0. All checks here would still be needed before
//! it, and without Redis no other part of the program needs it and its Unicode tables.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use plimsoll_measure::named_enum;
use serde::Serialize;
use serde_with::SerializeDisplay;

use crate::secret::redacted_path;

named_enum! {
    /// The scheme of a URL.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Scheme {
        /// Plain TCP.
        Http => "http",
        /// TLS.
        Https => "https",
    }
}

impl Scheme {
    /// Default port.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A base URL: scheme, host, port, an optional path prefix, and an optional query that is added to
/// every request (`?api-version=2024-06-01`). It never has credentials before the host, or a
/// fragment. Query values that may be credentials are hidden when it is shown.
#[derive(Clone, PartialEq, Eq, Hash, SerializeDisplay)]
pub struct TargetUrl {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
    /// Query with its `?`; empty for none.
    query: String,
}

impl TargetUrl {
    /// The scheme.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Name or address to connect to; an IPv6 address has no brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port; the scheme's default if not written.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Path prefix as written: empty, or starting with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Path prefix and query as written, for sending only.
    pub fn path_and_query(&self) -> String {
        format!("{}{}", self.path, self.query)
    }

    /// Query with its `?`, for sending only; empty for none.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Whether the host is local or has a private address, so that load costs nobody else money.
    pub fn is_private(&self) -> bool {
        if self.host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        match self.host.parse() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
            Ok(IpAddr::V6(ip)) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
            Err(_) => false,
        }
    }

    /// Whether the host is the local one.
    pub fn is_loopback(&self) -> bool {
        let address: Result<IpAddr, _> = self.host.parse();
        self.host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
    }

    /// The value of the `Host` header: IPv6 in brackets, the port only if it is not the scheme's
    /// default.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = redacted_path(&self.path_and_query());
        write!(f, "{}://{}{path}", self.scheme.name(), self.authority())
    }
}

/// Formats like `Display`, because a query may have credentials.
impl fmt::Debug for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a valid target URL. Messages do not quote the text, which may have a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// The scheme is missing. Remedy: put `http://` or `https://` before it.
    #[error("has no scheme")]
    NoScheme,
    /// The scheme is unsupported. Remedy: use `http://` or `https://`.
    #[error("has a scheme other than http and https")]
    Scheme,
    /// It has a name or password before the host. Remedy: use `key` or `headers`.
    #[error("contains credentials")]
    Credentials,
    /// The host is missing. Remedy: write the host.
    #[error("has no host")]
    NoHost,
    /// The host is neither a name nor an address. Remedy: check it; write IPv6 in brackets.
    #[error("has a host that is neither a name nor an address")]
    Host,
    /// The port is not a number from 1 to 65535. Remedy: correct it.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// It has a fragment, which is never sent. Remedy: remove it.
    #[error("has a fragment")]
    Fragment,
    /// It has a space, a control or a non-ASCII character. Remedy: remove or percent-encode it.
    #[error("contains a space, a control or a non-ASCII character")]
    Character,
}

impl UrlFault {
    /// The fix.
    pub const fn fix(self) -> &'static str {
        match self {
            Self::NoScheme | Self::Scheme => {
                "write it like `http://127.0.0.1:9000` or `https://gateway.example`"
            }
            Self::Credentials => {
                "remove them, and use `key` or `headers`, with `${ENV}` for the value"
            }
            Self::NoHost => "write the host after `://`",
            Self::Host => {
                "write a host name, an IPv4 address, or an IPv6 address in brackets like `[::1]`"
            }
            Self::Port => "write a port like `:9000`, or leave it out",
            Self::Fragment => "remove `#` and what follows: it is never sent",
            Self::Character => "remove or percent-encode it",
        }
    }
}

impl FromStr for TargetUrl {
    type Err = UrlFault;

    fn from_str(text: &str) -> Result<Self, UrlFault> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme_of(scheme)?, rest),
            // `HOST:PORT`.
            None if text.split('/').next().is_some_and(|host| host.contains(':')) => {
                (Scheme::Http, text)
            }
            None => return Err(UrlFault::NoScheme),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlFault::Credentials);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlFault::Character);
        }
        if path.contains('#') {
            return Err(UrlFault::Fragment);
        }
        let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
        let (host, port) = host_and_port(authority)?;
        let port = port.map_or_else(|| Ok(scheme.default_port()), port_of)?;
        Ok(Self {
            scheme,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }
}

fn scheme_of(name: &str) -> Result<Scheme, UrlFault> {
    match name.to_ascii_lowercase().as_str() {
        "http" => Ok(Scheme::Http),
        "https" => Ok(Scheme::Https),
        "" => Err(UrlFault::NoScheme),
        _ => Err(UrlFault::Scheme),
    }
}

/// Splits `host:port`, and checks the host.
fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), UrlFault> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, tail) = rest.split_once(']').ok_or(UrlFault::Host)?;
        address.parse::<Ipv6Addr>().map_err(|_| UrlFault::Host)?;
        return match tail.strip_prefix(':') {
            Some(port) => Ok((address, Some(port))),
            None if tail.is_empty() => Ok((address, None)),
            None => Err(UrlFault::Host),
        };
    }
    let (host, port) = authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
    if host.is_empty() {
        return Err(UrlFault::NoHost);
    }
    if host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        && port.is_none_or(|port| !port.contains(':'))
    {
        Ok((host, port))
    } else {
        Err(UrlFault::Host)
    }
}

fn port_of(text: &str) -> Result<u16, UrlFault> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| digits && port > 0).ok_or(UrlFault::Port)
}

// Alternatives to a direct connection to the targets' own addresses.

/// Ways to reach the targets.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReachPlan {
    /// Redirected connections for some hosts and ports; the first match applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect_to: Vec<ConnectTo>,
    /// Unix socket to connect to instead of TCP.
    pub unix_socket: Option<PathBuf>,
    /// Proxy to use.
    pub proxy: Option<ProxyUrl>,
}

impl ReachPlan {
    /// Whether every target is reached directly.
    pub fn is_direct(&self) -> bool {
        *self == Self::default()
    }
}

/// Redirects connections from `HOST1:PORT1` to `HOST2:PORT2`. An empty part means any, or the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDisplay)]
pub struct ConnectTo {
    /// Matching host.
    pub host: Option<String>,
    /// Matching port.
    pub port: Option<u16>,
    /// The host to connect to.
    pub to_host: Option<String>,
    /// The port to connect to.
    pub to_port: Option<u16>,
}

/// The error for a text that is not a valid [`ConnectTo`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid redirection `{0}`: expected HOST1:PORT1:HOST2:PORT2, such as `api.example:443:127.0.0.1:8443`; leave HOST1 or PORT1 empty for any, HOST2 or PORT2 empty for no change"
)]
pub struct ConnectToError(String);

impl FromStr for ConnectTo {
    type Err = ConnectToError;

    fn from_str(text: &str) -> Result<Self, ConnectToError> {
        parts(text).and_then(Self::from_parts).ok_or_else(|| ConnectToError(text.to_owned()))
    }
}

impl ConnectTo {
    /// Returns `None` without a destination, or if a port is not a number.
    fn from_parts(parts: [String; 4]) -> Option<Self> {
        let [host, port, to_host, to_port] = parts;
        let read = Self {
            host: Some(host).filter(|host| !host.is_empty()),
            port: read_port(&port).ok()?,
            to_host: Some(to_host).filter(|host| !host.is_empty()),
            to_port: read_port(&to_port).ok()?,
        };
        (read.to_host.is_some() || read.to_port.is_some()).then_some(read)
    }
}

/// An empty text means no port.
fn read_port(text: &str) -> Result<Option<u16>, ParseIntError> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

fn written_host(host: Option<&str>) -> String {
    match host {
        Some(host) if host.contains(':') => format!("[{host}]"),
        host => host.unwrap_or_default().to_owned(),
    }
}

/// Splits the four parts at colons outside brackets.
fn parts(text: &str) -> Option<[String; 4]> {
    let mut parts = vec![String::new()];
    let mut in_brackets = false;
    for character in text.chars() {
        match character {
            '[' if !in_brackets => in_brackets = true,
            ']' if in_brackets => in_brackets = false,
            ':' if !in_brackets => parts.push(String::new()),
            other => parts.last_mut()?.push(other),
        }
    }
    parts.try_into().ok()
}

impl fmt::Display for ConnectTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) =
            (written_host(self.host.as_deref()), written_host(self.to_host.as_deref()));
        let port = self.port.map(|port| port.to_string()).unwrap_or_default();
        let to_port = self.to_port.map(|port| port.to_string()).unwrap_or_default();
        write!(f, "{from}:{port}:{to}:{to_port}")
    }
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyScheme {
    /// HTTP.
    Http,
    /// SOCKS 5, which resolves names itself.
    Socks5,
}

/// A proxy, such as `http://proxy.example:3128` or `socks5://127.0.0.1:1080`. Its credentials are
/// hidden.
#[derive(Clone, PartialEq, Eq, SerializeDisplay)]
pub struct ProxyUrl {
    /// Protocol of the proxy.
    pub scheme: ProxyScheme,
    /// Host; an IPv6 address has no brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User name and password.
    pub credentials: Option<(String, String)>,
}

/// The error for an invalid proxy URL. It does not quote the text, which may have a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not a proxy URL; write http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before the host if it requires credentials"
)]
pub struct ProxyUrlError;

impl FromStr for ProxyUrl {
    type Err = ProxyUrlError;

    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyScheme::Http,
            "socks5" | "socks5h" | "socks" => ProxyScheme::Socks5,
            _ => return Err(ProxyUrlError),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((own, place)) => (Some(own.split_once(':').unwrap_or((own, ""))), place),
            None => (None, rest),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| ProxyUrlError)?)
            }
            // The default port of curl and others.
            _ => (place, 1080),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_host || host.contains(['/', '?', '#']) {
            return Err(ProxyUrlError);
        }
        Ok(Self {
            scheme,
            host: host.to_owned(),
            port,
            credentials: credentials.map(|(user, password)| (decoded(user), decoded(password))),
        })
    }
}

/// Formats without credentials.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            ProxyScheme::Http => "http",
            ProxyScheme::Socks5 => "socks5",
        };
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "{scheme}://{host}:{}", self.port)
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::REDACTED;
    use proptest::prelude::*;

    #[test]
    fn the_parts_of_a_url_are_as_written() {
        for (text, scheme, host, port, path) in [
            ("http://127.0.0.1:9000", Scheme::Http, "127.0.0.1", 9000, ""),
            ("https://gateway.example", Scheme::Https, "gateway.example", 443, ""),
            ("HTTP://gateway/", Scheme::Http, "gateway", 80, "/"),
            ("http://[::1]:8080/openai", Scheme::Http, "::1", 8080, "/openai"),
            ("https://[2001:db8::7]", Scheme::Https, "2001:db8::7", 443, ""),
            ("http://Gateway/a/../b//c", Scheme::Http, "Gateway", 80, "/a/../b//c"),
            ("http://127.1", Scheme::Http, "127.1", 80, ""),
        ] {
            let url: TargetUrl = text.parse().unwrap();
            assert_eq!(
                (url.scheme(), url.host(), url.port(), url.path()),
                (scheme, host, port, path),
                "{text}"
            );
        }
    }

    #[test]
    fn a_query_is_sent_as_written_and_shown_without_credentials() {
        for (text, sent, shown) in [
            ("https://h/p?api-version=2024-06-01", "/p?api-version=2024-06-01", None),
            ("http://h?limit=1&b=2", "?limit=1&b=2", Some("http://h?limit=1&b=<redacted>")),
            ("http://h/p?", "/p?", None),
            (
                "http://h/p?key=sk-1&limit=2",
                "/p?key=sk-1&limit=2",
                Some("http://h/p?key=<redacted>&limit=2"),
            ),
        ] {
            let url: TargetUrl = text.parse().unwrap();
            assert_eq!(
                (url.path_and_query().as_str(), url.to_string().as_str()),
                (sent, shown.unwrap_or(text))
            );
        }
    }

    #[test]
    fn a_host_with_a_port_needs_no_scheme() {
        for text in ["127.0.0.1:9000/v1", "localhost:9000", "[::1]:9000"] {
            assert_eq!(text.parse(), format!("http://{text}").parse::<TargetUrl>(), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_their_fault() {
        for (text, fault) in [
            ("", UrlFault::NoScheme),
            ("127.0.0.1", UrlFault::NoScheme),
            ("://host", UrlFault::NoScheme),
            ("ftp://host", UrlFault::Scheme),
            ("http://me:pw@host", UrlFault::Credentials),
            ("http://", UrlFault::NoHost),
            ("http://:80", UrlFault::NoHost),
            ("http:///path", UrlFault::NoHost),
            ("http://::1/", UrlFault::NoHost),
            ("http://fe80::1/", UrlFault::Host),
            ("http://[::1", UrlFault::Host),
            ("http://[::g]", UrlFault::Host),
            ("http://[::1]x", UrlFault::Host),
            ("http://ho$t", UrlFault::Host),
            ("http://host:", UrlFault::Port),
            ("http://host:0", UrlFault::Port),
            ("http://host:+80", UrlFault::Port),
            ("http://host:65536", UrlFault::Port),
            ("http://host?x=1#f", UrlFault::Fragment),
            ("http://host/p#f", UrlFault::Fragment),
            ("http://host/a b", UrlFault::Character),
            ("http://h\u{f6}st/", UrlFault::Character),
            ("http://host/\r\nX: y", UrlFault::Character),
        ] {
            assert_eq!(text.parse::<TargetUrl>(), Err(fault), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_and_accepted_urls_parse_again(text in "(https?://)?[ -~]{0,20}|\\PC*") {
            if let Ok(url) = text.parse::<TargetUrl>() {
                let shown = url.to_string();
                prop_assert!(shown.contains(REDACTED) || shown.parse() == Ok(url));
            }
        }
    }
}

#[cfg(test)]
mod reach_tests {
    use super::*;

    #[test]
    fn another_place_is_written_as_curl_has_it() {
        for (text, shown) in [
            ("a:443:127.0.0.1:8443", "a:443:127.0.0.1:8443"),
            ("::b:", "::b:"),
            ("[::1]:80:[::2]:81", "[::1]:80:[::2]:81"),
            (":::9000", ":::9000"),
        ] {
            assert_eq!(text.parse::<ConnectTo>().unwrap().to_string(), shown);
        }
        for text in ["", "a:80", "a:80::", "a:b:c:d", "a:80:b:70000", "a:1:b:2:c"] {
            assert!(text.parse::<ConnectTo>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_proxy_is_shown_without_credentials() {
        for (text, shown, credentials) in [
            ("http://p:3128", "http://p:3128", None),
            ("p:3128", "http://p:3128", None),
            ("SOCKS5://u:p%40ss@[::1]:9/", "socks5://[::1]:9", Some(("u", "p@ss"))),
            ("socks5h://h", "socks5://h:1080", None),
            ("http://me@p:1", "http://p:1", Some(("me", ""))),
        ] {
            let proxy: ProxyUrl = text.parse().unwrap();
            assert_eq!(format!("{proxy:?}"), shown);
            let own = proxy.credentials.as_ref().map(|(user, pass)| (user.as_str(), pass.as_str()));
            assert_eq!(own, credentials, "{text}");
        }
        for text in ["", "ftp://p:1", "http://", "http://p:x", "https://p:1", "http://p:1/path"] {
            assert!(text.parse::<ProxyUrl>().is_err(), "{text}");
        }
    }
}
