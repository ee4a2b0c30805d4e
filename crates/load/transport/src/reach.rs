//! Alternatives to a direct connection to a server's own address: another destination, a Unix
//! socket, or a proxy.

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_measure::ErrorClass;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_socks::Error;
use tokio_socks::tcp::Socks5Stream;

use crate::failure::Failure;

/// Destination of connections other than the addresses of their endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Other destinations for some endpoints; the first match applies.
    pub connect_to: Vec<ConnectTo>,
    /// A Unix socket instead of TCP.
    pub unix_socket: Option<PathBuf>,
    /// A proxy in between.
    pub proxy: Option<Proxy>,
    /// Whether plain HTTP is tunneled through the proxy too; otherwise the proxy reads its
    /// requests.
    pub tunnel_plain: bool,
}

/// Redirects connections to another destination. Names in requests and certificates do not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectTo {
    /// Matching host; `None` for any.
    pub host: Option<String>,
    /// Matching port; `None` for any.
    pub port: Option<u16>,
    /// Host to connect to; `None` for the same.
    pub to_host: Option<String>,
    /// Port to connect to; `None` for the same.
    pub to_port: Option<u16>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// HTTP: `CONNECT` opens a tunnel.
    Http,
    /// SOCKS version 5. The proxy resolves names.
    Socks5,
}

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Protocol of the proxy.
    pub protocol: ProxyProtocol,
    /// Address of the proxy.
    pub endpoint: Endpoint,
    /// User name and password.
    pub credentials: Option<(String, String)>,
}

/// Hides the credentials.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.protocol, self.endpoint)
    }
}

impl Reach {
    /// Destination of connections to an endpoint, apart from a proxy.
    pub(crate) fn place(&self, endpoint: &Endpoint) -> Endpoint {
        let rule = self.connect_to.iter().find(|rule| {
            let host = rule.host.as_ref();
            host.is_none_or(|host| host.eq_ignore_ascii_case(endpoint.host()))
                && rule.port.is_none_or(|port| port == endpoint.port())
        });
        let Some(rule) = rule else { return endpoint.clone() };
        let host = rule.to_host.clone().unwrap_or_else(|| endpoint.host().to_owned());
        Endpoint::new(host, rule.to_port.unwrap_or_else(|| endpoint.port()))
    }
}

impl Proxy {
    /// Requests a tunnel to a destination, on a connection to the proxy.
    pub(crate) async fn tunnel(&self, tcp: TcpStream, to: &Endpoint) -> Result<TcpStream, Failure> {
        match self.protocol {
            ProxyProtocol::Http => open(tcp, to, self.credentials.as_ref()).await,
            ProxyProtocol::Socks5 => open_socks(tcp, to, self.credentials.as_ref()).await,
        }
    }
}

/// Connects to a Unix socket. To the kernel it is a stream like any other.
pub(crate) async fn connect_unix(path: &Path) -> Result<TcpStream, Failure> {
    let connected = tokio::net::UnixStream::connect(path).await;
    let socket: std::io::Result<UnixStream> = connected.and_then(tokio::net::UnixStream::into_std);
    let tcp = socket
        .and_then(|socket| TcpStream::from_std(std::net::TcpStream::from(OwnedFd::from(socket))));
    tcp.map_err(|error| {
        let failure = Failure::connecting(&error);
        let class = match failure.class {
            // No socket has that name.
            ErrorClass::LocalIo => ErrorClass::ConnectRefused,
            class => class,
        };
        Failure::new(class, format!("{}: {}", path.display(), failure.detail))
    })
}

/// The failure of a proxy that opens no tunnel.
fn refused(detail: String) -> Failure {
    Failure::new(ErrorClass::Proxy, detail)
}

// A tunnel through an HTTP proxy (RFC 9110, section 9.3.6).

/// Maximum size of the response head.
const MAX_HEAD: usize = 16 * 1024;

/// Opens a tunnel.
async fn open(
    mut tcp: TcpStream,
    to: &Endpoint,
    credentials: Option<&(String, String)>,
) -> Result<TcpStream, Failure> {
    let mut request = format!("CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n");
    if let Some((user, password)) = credentials {
        let basic = BASE64_STANDARD.encode(format!("{user}:{password}"));
        request.extend(["proxy-authorization: Basic ", &basic, "\r\n"]);
    }
    request.push_str("\r\n");
    tcp.write_all(request.as_bytes()).await.map_err(|error| Failure::connecting(&error))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Reads byte by byte, because the bytes after the head belong to the tunnel.
        let byte = tcp.read_u8().await.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => refused(
                "the proxy closed instead of opening a tunnel; is it an HTTP proxy?".to_owned(),
            ),
            _ => Failure::connecting(&error),
        })?;
        head.push(byte);
        if head.len() > MAX_HEAD {
            return Err(Failure::new(ErrorClass::HeadTooLarge, "the proxy's answer to CONNECT"));
        }
    }
    judge(&head, to)?;
    Ok(tcp)
}

fn judge(head: &[u8], to: &Endpoint) -> Result<(), Failure> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut answer = httparse::Response::new(&mut headers);
    if answer.parse(head).is_err() {
        let start: String = String::from_utf8_lossy(head).chars().take(60).collect();
        return Err(refused(format!(
            "the proxy answers CONNECT with {start:?}, which is not HTTP; is it an HTTP proxy?"
        )));
    }
    let (status, reason) = (answer.code.unwrap_or(0), answer.reason.unwrap_or_default());
    match status {
        200..300 => Ok(()),
        407 => Err(refused(
            "the proxy requires credentials (407); write USER:PASSWORD@ before the host of --proxy"
                .to_owned(),
        )),
        _ => Err(refused(format!(
            "the proxy answers CONNECT {to} with {status} {reason}; check its rules and its log"
        ))),
    }
}

// A tunnel through a SOCKS proxy, version 5 (RFC 1928, RFC 1929).

/// Opens a tunnel; the proxy resolves the name.
async fn open_socks(
    tcp: TcpStream,
    to: &Endpoint,
    credentials: Option<&(String, String)>,
) -> Result<TcpStream, Failure> {
    let place = (to.host(), to.port());
    let opened = match credentials {
        None => Socks5Stream::connect_with_socket(tcp, place).await,
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(tcp, place, user, password).await
        }
    };
    opened.map(Socks5Stream::into_inner).map_err(|error| match error {
        Error::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Failure::connecting(&error)
        }
        Error::PasswordAuthFailure(_) => {
            refused("the proxy rejected the user and password of --proxy".to_owned())
        }
        error => refused(format!("no connection to {to} through the SOCKS 5 proxy: {error}")),
    })
}

// The address of a target.

/// Host and port of a target. An IPv6 address is written without brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

/// Why a text is not `HOST` or `HOST:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text after the colon is not a port number.
    #[error("the port is not a number")]
    Port,
    /// The host is empty.
    #[error("the URL has no host")]
    Host,
}

impl Endpoint {
    /// Parses the part of a URL between the user and the path: `HOST` or `HOST:PORT`, with an IPv6
    /// address in brackets.
    ///
    /// # Errors
    /// The invalid part.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, EndpointError> {
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address are inside brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| EndpointError::Port)?)
            }
            _ => (text, default_port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            Err(EndpointError::Host)
        } else {
            Ok(Self::new(host.to_owned(), port))
        }
    }

    /// Creates an endpoint from a host name or address, and a port.
    pub const fn new(host: String, port: u16) -> Self {
        Self { host, port }
    }

    /// The host name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// Formats as `host:port`, with an IPv6 address in brackets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_says_where_to_connect() {
        let rule = |host: &str, port: u16, to: &str, to_port: u16| ConnectTo {
            host: Some(host.to_owned()).filter(|host| !host.is_empty()),
            port: Some(port).filter(|port| *port > 0),
            to_host: Some(to.to_owned()).filter(|to| !to.is_empty()),
            to_port: Some(to_port).filter(|port| *port > 0),
        };
        let reach = Reach {
            connect_to: vec![rule("A.example", 80, "127.0.0.1", 0), rule("", 81, "", 8081)],
            ..Reach::default()
        };
        for (host, port, place) in [
            ("a.example", 80, "127.0.0.1:80"),
            ("a.example", 81, "a.example:8081"),
            ("a.example", 82, "a.example:82"),
        ] {
            assert_eq!(reach.place(&Endpoint::new(host.to_owned(), port)).to_string(), place);
        }
    }
}

#[cfg(test)]
mod endpoint_tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_host_and_perhaps_a_port() {
        for (text, shown) in [
            ("h", Ok("h:80")),
            ("h:9", Ok("h:9")),
            ("[::1]", Ok("[::1]:80")),
            ("[::1]:9", Ok("[::1]:9")),
            ("", Err(EndpointError::Host)),
            (":9", Err(EndpointError::Host)),
            ("h:x", Err(EndpointError::Port)),
            ("h:70000", Err(EndpointError::Port)),
        ] {
            let read = Endpoint::parse(text, 80).map(|endpoint| endpoint.to_string());
            assert_eq!(read, shown.map(str::to_owned), "{text}");
        }
    }
}
