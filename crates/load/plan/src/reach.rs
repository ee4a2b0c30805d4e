//! Alternatives to a direct connection to the targets' own addresses.

use std::fmt;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;
use serde_with::SerializeDisplay;

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
            credentials: credentials
                .map(|(user, password)| (percent_decoded(user), percent_decoded(password))),
        })
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Formats without credentials.
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
