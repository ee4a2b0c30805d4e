//! The target's URL.
//!
//! Parsed here instead of by the `url` crate, because a load tool must send exactly the user's
//! text. `url` removes dot segments from the path (`/a/../b`), turns an empty path into `/`,
//! lowercases the host, rewrites IPv4 shorthands (`127.1`), drops line breaks, turns backslashes
//! into slashes, and accepts an empty port and port 0. All checks here would still be needed before
//! it, and without Redis no other part of the program needs it and its Unicode tables.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde_with::SerializeDisplay;

use crate::secret::redacted_path;

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain TCP.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// The name before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

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
#[non_exhaustive]
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
