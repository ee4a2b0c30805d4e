//! Opening connections, each phase timed.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_measure::{Clock, ConnectPhases, ErrorClass, Nanos, Seed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::net::{TcpSocket, TcpStream};

use crate::connection::{Connection, ReadBuffers};
use crate::failure::Failure;
use crate::http2::Multiplexed;
use crate::resolve::Resolver;
use crate::socket::Socket;
use crate::stamp::RxClock;

/// Host and port of a target. An IPv6 address is written without brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// A host name or address, and a port.
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

/// As `host:port`, an IPv6 address in brackets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A host name that cannot be verified in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither a DNS name nor an IP address, so no certificate can be checked against it"
)]
pub struct InvalidHost(String);

/// A new connection, or why there is none, and how long each phase took.
#[derive(Debug)]
pub struct Connected {
    /// Times of the phases that took place.
    pub phases: ConnectPhases,
    /// The connection.
    pub connection: Result<Connection, Failure>,
}

/// How connections are opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Bounds the whole of one attempt.
    pub timeout: Nanos,
    /// Shall the kernel note when bytes arrive?
    pub kernel_stamps: bool,
    /// HTTP/2, with at most so many streams on a connection; `None` for HTTP/1.1. A TLS configuration must offer the
    /// protocol ([`TlsSettings::client_config`](crate::TlsSettings::client_config)).
    pub http2_streams: Option<u32>,
    /// Local addresses that connections start from, in turn; none leaves it to the kernel. Each has local ports of
    /// its own.
    pub bind: Vec<IpAddr>,
    /// HTTP/1.1: a connection is closed after so many requests, drawn anew for each between these two; `None` keeps
    /// it as long as the target does.
    pub requests_per_connection: Option<(u32, u32)>,
}

/// Opens connections to one endpoint.
#[derive(Debug)]
pub struct Connector {
    endpoint: Endpoint,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    options: SocketOptions,
    resolver: Resolver,
    /// Connections that were begun.
    begun: Cell<u64>,
    /// Read buffers of the connections that are shared.
    scratch: OnceCell<Rc<RefCell<ReadBuffers>>>,
}

impl Connector {
    /// A connector over plain TCP, or over TLS where a configuration is given.
    ///
    /// # Errors
    /// [`InvalidHost`] for a TLS endpoint whose name no certificate can bear.
    pub fn new(
        endpoint: Endpoint,
        tls: Option<Arc<ClientConfig>>,
        options: SocketOptions,
    ) -> Result<Self, InvalidHost> {
        let tls = match tls {
            None => None,
            Some(config) => {
                let name = ServerName::try_from(endpoint.host.clone());
                Some((config, name.map_err(|_| InvalidHost(endpoint.host.clone()))?))
            }
        };
        let (resolver, begun) = (Resolver::default(), Cell::new(0));
        Ok(Self { endpoint, tls, options, resolver, begun, scratch: OnceCell::new() })
    }

    /// Opens a connection.
    pub async fn connect<C: Clock>(&self, clock: &C) -> Connected {
        let mut phases = ConnectPhases::default();
        let connection = self.in_time(self.attempt(clock, &mut phases)).await;
        Connected { phases, connection }
    }

    /// Opens a connection for many streams at once.
    pub(crate) async fn connect_shared<C: Clock + 'static>(
        &self,
        stamper: &Rc<RxClock<C>>,
        streams: u32,
    ) -> (ConnectPhases, Result<Rc<Multiplexed>, Failure>) {
        let mut phases = ConnectPhases::default();
        let opened = self.in_time(self.attempt_shared(stamper, streams, &mut phases)).await;
        (phases, opened)
    }

    /// Streams that one connection carries; `None` where each carries one exchange after another.
    pub(crate) const fn streams_per_connection(&self) -> Option<u32> {
        self.options.http2_streams
    }

    async fn in_time<T>(
        &self,
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limit = self.options.timeout;
        // Boxed: every task that may connect would else hold room for a handshake as long as it lives.
        tokio::time::timeout(limit.to_duration(), Box::pin(attempt)).await.unwrap_or_else(|_| {
            let detail = format!("no connection to {} within {limit}", self.endpoint);
            Err(Failure::new(ErrorClass::ConnectTimeout, detail))
        })
    }

    async fn attempt_shared<C: Clock + 'static>(
        &self,
        stamper: &Rc<RxClock<C>>,
        streams: u32,
        phases: &mut ConnectPhases,
    ) -> Result<Rc<Multiplexed>, Failure> {
        let socket = self.open_socket(stamper.clock(), phases).await?;
        if self.tls.is_some() && socket.alpn() != Some(b"h2") {
            return Err(Failure::new(
                ErrorClass::TlsHandshake,
                "the target does not offer HTTP/2 (ALPN `h2`)",
            ));
        }
        let scratch = self.scratch.get_or_init(Rc::default);
        Ok(Multiplexed::open(socket, stamper, scratch, streams))
    }

    /// Resolves the name and opens a TCP connection.
    async fn connect_tcp<C: Clock>(
        &self,
        clock: &C,
        phases: &mut ConnectPhases,
    ) -> Result<TcpStream, Failure> {
        let (addresses, dns) = self.resolver.resolve(clock, &self.endpoint).await?;
        phases.dns = dns;
        let began = clock.now();
        let tcp = connect_first(&addresses, self.source()).await?;
        phases.tcp = Some(clock.now().since(began));
        Ok(tcp)
    }

    async fn attempt<C: Clock>(
        &self,
        clock: &C,
        phases: &mut ConnectPhases,
    ) -> Result<Connection, Failure> {
        let socket = self.open_socket(clock, phases).await?;
        Ok(Connection::http1(socket, self.lifetime()))
    }

    /// Opens a TCP connection, with TLS where that is asked for.
    async fn open_socket<C: Clock>(
        &self,
        clock: &C,
        phases: &mut ConnectPhases,
    ) -> Result<Socket, Failure> {
        let tcp = self.connect_tcp(clock, phases).await?;
        let connected = clock.now();
        let Some((config, name)) = &self.tls else {
            return Ok(self.finish(Socket::plain(tcp)));
        };
        let session = ClientConnection::new(Arc::clone(config), name.clone())
            .map_err(|error| Failure::new(ErrorClass::TlsHandshake, error.to_string()))?;
        let socket = Socket::handshake(tcp, session).await?;
        phases.tls = Some(clock.now().since(connected));
        phases.resumed = socket.was_resumed();
        Ok(self.finish(socket))
    }

    /// The local address of the next connection.
    fn source(&self) -> Option<IpAddr> {
        let begun = self.begun.get();
        self.begun.set(begun + 1);
        let count = u64::try_from(self.options.bind.len()).unwrap_or(1).max(1);
        self.options.bind.get(usize::try_from(begun % count).unwrap_or(0)).copied()
    }

    /// Requests that the connection just begun may carry.
    fn lifetime(&self) -> u32 {
        let Some((min, max)) = self.options.requests_per_connection else { return u32::MAX };
        let spread = u64::from(max.saturating_sub(min)) + 1;
        let drawn = Seed::default().rng("requests per connection", self.begun.get()).below(spread);
        min.saturating_add(u32::try_from(drawn).unwrap_or(0)).max(1)
    }

    fn finish(&self, mut socket: Socket) -> Socket {
        if self.options.kernel_stamps {
            socket.ask_for_stamps();
        }
        socket
    }
}

async fn connect_from(address: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect(address).await };
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(SocketAddr::new(source, 0))?;
    socket.connect(address).await
}

/// The first address that accepts; the last one's failure if none does.
async fn connect_first(
    addresses: &[SocketAddr],
    source: Option<IpAddr>,
) -> Result<TcpStream, Failure> {
    let mut last = Failure::new(ErrorClass::Dns, "no address");
    for address in addresses {
        match connect_from(*address, source).await {
            Ok(tcp) => {
                // Requests are written whole: waiting for more would only add delay.
                tcp.set_nodelay(true).map_err(|error| Failure::connecting(&error))?;
                return Ok(tcp);
            }
            Err(error) => {
                last = Failure::connecting(&error);
                last.detail = format!("{address}: {}", last.detail);
            }
        }
    }
    Err(last)
}
