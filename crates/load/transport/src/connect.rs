//! Opens connections and times each phase.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_measure::{Clock, ConnectPhases, ErrorClass, Moment, Nanos, Seed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::addresses::Addresses;
use crate::buffers::ReadBuffers;
use crate::connection::{Connection, Opened};
use crate::failure::Failure;
use crate::http1::Http1Connection;
use crate::http2::SharedConnection;
use crate::reach::{Endpoint, ProxyProtocol, Reach, connect_unix};
use crate::rx_timestamp::RxClock;
use crate::send_queue::SendQueue;
use crate::socket::Socket;

/// A host name that cannot be verified in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither a DNS name nor an IP address, so no certificate can be checked against it"
)]
pub struct InvalidHost(String);

/// Options for new connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Time limit of one attempt, including all its phases.
    pub timeout: Nanos,
    /// Whether to use the kernel's receive time stamps.
    pub kernel_timestamps: bool,
    /// HTTP/2 with at most this many streams on a connection; `None` for HTTP/1.1. A TLS
    /// configuration must offer the protocol
    /// ([`TlsSettings::client_config`](crate::TlsSettings::client_config)).
    pub http2_streams: Option<u32>,
    /// Local addresses of connections, used in turn. If empty, the kernel chooses. Each address has
    /// a separate range of local ports.
    pub bind: Vec<IpAddr>,
    /// HTTP/1.1: a connection is closed after a random number of requests between these two. `None`
    /// keeps it open as long as the target does.
    pub requests_per_connection: Option<(u32, u32)>,
    /// Alternatives to a direct connection to the endpoint's own addresses.
    pub reach: Reach,
}

/// Opens connections to one endpoint.
#[derive(Debug)]
pub struct Connector {
    endpoint: Endpoint,
    /// The endpoint's destination, apart from a proxy.
    place: Endpoint,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    options: SocketOptions,
    resolver: Resolver,
    addresses: Addresses,
    /// Number of connections by the parameters that their TLS handshakes negotiated.
    negotiated: RefCell<BTreeMap<String, u64>>,
    /// Number of started connections.
    started: Cell<u64>,
    /// Read buffers of shared connections.
    buffers: OnceCell<Rc<RefCell<ReadBuffers>>>,
    /// Queue for the requests of a busy worker.
    send_queue: Option<Rc<SendQueue>>,
}

impl Connector {
    /// Creates a connector for plain TCP, or for TLS if a configuration is given.
    ///
    /// # Errors
    /// [`InvalidHost`] for a TLS endpoint whose name no certificate can contain.
    pub fn new(
        endpoint: Endpoint,
        tls: Option<Arc<ClientConfig>>,
        options: SocketOptions,
    ) -> Result<Self, InvalidHost> {
        let tls = match tls {
            None => None,
            Some(config) => {
                let name = ServerName::try_from(endpoint.host().to_owned());
                Some((config, name.map_err(|_| InvalidHost(endpoint.host().to_owned()))?))
            }
        };
        Ok(Self {
            place: options.reach.place(&endpoint),
            endpoint,
            tls,
            options,
            resolver: Resolver::default(),
            addresses: Addresses::default(),
            negotiated: RefCell::default(),
            started: Cell::new(0),
            buffers: OnceCell::new(),
            send_queue: None,
        })
    }

    /// Makes connections send their requests through this queue.
    pub fn sending_through(self, queue: &Rc<SendQueue>) -> Self {
        Self { send_queue: Some(Rc::clone(queue)), ..self }
    }

    /// Number of connections by address, if the endpoint's name has several.
    pub fn addresses(&self) -> Vec<(SocketAddr, u64)> {
        self.addresses.connections()
    }

    /// Number of connections by negotiated TLS parameters, such as `TLS 1.3, ALPN h2`; empty
    /// without TLS.
    pub fn negotiated(&self) -> BTreeMap<String, u64> {
        self.negotiated.borrow().clone()
    }

    /// Opens a connection.
    pub async fn connect<C: Clock>(&self, clock: &C) -> Opened<Connection> {
        let mut phases = ConnectPhases::default();
        let in_time = self.in_time(self.attempt(clock, &mut phases)).await;
        let connection = in_time.unwrap_or_else(|| Err(self.too_late(&phases)));
        Opened { phases, connection }
    }

    /// Opens a connection for many streams at once.
    pub(crate) async fn connect_shared<C: Clock + 'static>(
        &self,
        rx_clock: &Rc<RxClock<C>>,
        streams: u32,
    ) -> (ConnectPhases, Result<Rc<SharedConnection>, Failure>) {
        let mut phases = ConnectPhases::default();
        let in_time = self.in_time(self.attempt_shared(rx_clock, streams, &mut phases)).await;
        let opened = in_time.unwrap_or_else(|| Err(self.too_late(&phases)));
        (phases, opened)
    }

    /// Streams per connection; `None` for HTTP/1.1.
    pub(crate) const fn streams_per_connection(&self) -> Option<u32> {
        self.options.http2_streams
    }

    /// Runs an attempt; `None` if it exceeds the time limit of a connection.
    async fn in_time<T>(&self, attempt: impl Future<Output = T>) -> Option<T> {
        // Boxed, because otherwise every task that may connect reserves space for a handshake.
        tokio::time::timeout(self.options.timeout.to_duration(), Box::pin(attempt)).await.ok()
    }

    /// The failure of an attempt that exceeded its limit, by its current phase.
    fn too_late(&self, phases: &ConnectPhases) -> Failure {
        let (endpoint, limit) = (&self.endpoint, self.options.timeout);
        if self.tls.is_some() && phases.tcp.is_some() {
            let detail = format!(
                "{endpoint} accepted the connection, but did not answer the TLS handshake within {limit}, like a server without TLS: use http://, another port, or a longer `connect_timeout`"
            );
            return Failure::new(ErrorClass::TlsHandshake, detail);
        }
        let detail = format!("no connection to {endpoint} within {limit}");
        Failure::new(ErrorClass::ConnectTimeout, detail)
    }

    async fn attempt_shared<C: Clock + 'static>(
        &self,
        rx_clock: &Rc<RxClock<C>>,
        streams: u32,
        phases: &mut ConnectPhases,
    ) -> Result<Rc<SharedConnection>, Failure> {
        let socket = self.open_socket(rx_clock.clock(), phases).await?;
        if self.tls.is_some() && socket.alpn() != Some(b"h2") {
            return Err(Failure::new(
                ErrorClass::TlsHandshake,
                "the target does not offer HTTP/2 (ALPN `h2`); leave out --http2 (`http_version`)",
            ));
        }
        let buffers = self.buffers.get_or_init(Rc::default);
        Ok(SharedConnection::open(socket, rx_clock, buffers, streams))
    }

    /// Resolves the name and opens a TCP connection, or a tunnel through a proxy.
    async fn connect_tcp<C: Clock>(
        &self,
        clock: &C,
        phases: &mut ConnectPhases,
    ) -> Result<TcpStream, Failure> {
        // Slightly less than the overall limit, so that the failure names the phase.
        let limit = Nanos::new(self.options.timeout.as_u64() / 16 * 15);
        let Reach { unix_socket, proxy, tunnel_plain, .. } = &self.options.reach;
        let started = clock.now();
        if let Some(path) = unix_socket {
            let socket = connect_unix(path).await?;
            phases.tcp = Some(clock.now().since(started));
            return Ok(socket);
        }
        let first = proxy.as_ref().map_or(&self.place, |proxy| &proxy.endpoint);
        let (addresses, dns) = self.resolver.resolve(clock, first, limit).await?;
        phases.dns = dns;
        let started = clock.now();
        let mut tcp = self.addresses.connect(clock, &addresses, self.local_address()).await?;
        if let Some(proxy) = proxy
            && (self.tls.is_some() || *tunnel_plain || proxy.protocol == ProxyProtocol::Socks5)
        {
            tcp = proxy.tunnel(tcp, &self.place).await?;
        }
        phases.tcp = Some(clock.now().since(started));
        Ok(tcp)
    }

    async fn attempt<C: Clock>(
        &self,
        clock: &C,
        phases: &mut ConnectPhases,
    ) -> Result<Connection, Failure> {
        let socket = self.open_socket(clock, phases).await?;
        let queue = self.send_queue.clone();
        Ok(Connection::http1(Http1Connection::new(socket, self.lifetime(), queue)))
    }

    /// Opens a TCP connection, with TLS if configured.
    async fn open_socket<C: Clock>(
        &self,
        clock: &C,
        phases: &mut ConnectPhases,
    ) -> Result<Socket, Failure> {
        let tcp = self.connect_tcp(clock, phases).await?;
        let connected = clock.now();
        let Some((config, name)) = &self.tls else {
            return Ok(self.configure(Socket::plain(tcp)));
        };
        let session = ClientConnection::new(Arc::clone(config), name.clone())
            .map_err(|error| Failure::new(ErrorClass::TlsHandshake, error.to_string()))?;
        let socket = Socket::handshake(tcp, session).await?;
        phases.tls = Some(clock.now().since(connected));
        phases.resumed = socket.was_resumed();
        if let Some(agreed) = socket.negotiated() {
            *self.negotiated.borrow_mut().entry(agreed).or_default() += 1;
        }
        Ok(self.configure(socket))
    }

    /// The local address of the next connection.
    fn local_address(&self) -> Option<IpAddr> {
        let started = self.started.get();
        self.started.set(started + 1);
        let count = u64::try_from(self.options.bind.len()).unwrap_or(1).max(1);
        self.options.bind.get(usize::try_from(started % count).unwrap_or(0)).copied()
    }

    /// Number of requests for the new connection.
    fn lifetime(&self) -> u32 {
        let Some((min, max)) = self.options.requests_per_connection else { return u32::MAX };
        let spread = u64::from(max.saturating_sub(min)) + 1;
        let drawn =
            Seed::default().rng("requests per connection", self.started.get()).below(spread);
        min.saturating_add(u32::try_from(drawn).unwrap_or(0)).max(1)
    }

    fn configure(&self, mut socket: Socket) -> Socket {
        // The kernel does not stamp data on Unix sockets.
        if self.options.kernel_timestamps && self.options.reach.unix_socket.is_none() {
            socket.enable_timestamps();
        }
        socket
    }
}

/// Time for which addresses are cached. Long enough that a burst of new connections needs one
/// lookup, and short enough to follow a target whose address changes.
const CACHE_TTL: Nanos = Nanos::from_secs(30);

/// Time for which a failure is cached, so that an unresolvable name is not looked up for every
/// request.
const FAILURE_TTL: Nanos = Nanos::from_secs(1);

/// Result of a lookup.
type Answer = Result<Vec<SocketAddr>, String>;

/// The system's blocking lookup of a host and port.
type Lookup = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Resolves the host of one endpoint.
#[derive(Debug)]
pub(crate) struct Resolver {
    lookup: Lookup,
    cached: RefCell<Option<(Moment, Answer)>>,
    /// The lookup in progress, for which all connections wait. A cancelled connection does not end
    /// it.
    pending: RefCell<Option<watch::Receiver<Option<Answer>>>>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::with(|host, port| (host, port).to_socket_addrs().map(Iterator::collect))
    }
}

impl Resolver {
    fn with(lookup: Lookup) -> Self {
        Self { lookup, cached: RefCell::default(), pending: RefCell::default() }
    }

    /// The addresses, and the duration of the lookup if one was needed. Fails if `limit` expires.
    pub(crate) async fn resolve<C: Clock>(
        &self,
        clock: &C,
        endpoint: &Endpoint,
        limit: Nanos,
    ) -> Result<(Vec<SocketAddr>, Option<Nanos>), Failure> {
        if let Ok(address) = endpoint.host().parse::<IpAddr>() {
            return Ok((vec![SocketAddr::new(address, endpoint.port())], None));
        }
        let started = clock.now();
        if let Some(answer) = self.cached(started) {
            return answer.map(|addresses| (addresses, None)).map_err(failure);
        }
        let mut pending = self.join_lookup(endpoint)?;
        let answer = tokio::time::timeout(limit.to_duration(), pending.wait_for(Option::is_some));
        let host = endpoint.host();
        let answer = match answer.await {
            Err(_) => return Err(failure(format!("no DNS answer for `{host}` within {limit}"))),
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Ok(Vec::new())),
            Ok(Err(_)) => Err(format!("the lookup of `{host}` was aborted")),
        };
        let answer = match answer {
            Ok(addresses) if addresses.is_empty() => Err(format!("`{host}` has no address")),
            answer => answer,
        };
        let now = clock.now();
        self.pending.replace(None);
        self.cached.replace(Some((now, answer.clone())));
        answer.map(|addresses| (addresses, Some(now.since(started)))).map_err(failure)
    }

    /// The recent result, if there is one.
    fn cached(&self, now: Moment) -> Option<Answer> {
        let cached = self.cached.borrow();
        let (at, answer) = cached.as_ref()?;
        let valid = if answer.is_ok() { CACHE_TTL } else { FAILURE_TTL };
        (now.since(*at) < valid).then(|| answer.clone())
    }

    /// Joins the lookup in progress, or starts one. It has its own thread, which does not block the
    /// end of the run, because the system's lookup cannot be cancelled and may take half a minute.
    fn join_lookup(&self, endpoint: &Endpoint) -> Result<watch::Receiver<Option<Answer>>, Failure> {
        if let Some(pending) = &*self.pending.borrow() {
            return Ok(pending.clone());
        }
        let (sender, receiver) = watch::channel(None);
        let (lookup, host, port) = (self.lookup, endpoint.host().to_owned(), endpoint.port());
        std::thread::Builder::new()
            .name("plimsoll-dns".to_owned())
            .spawn(move || {
                let answer = lookup(&host, port).map_err(|error| error.to_string());
                // The receivers may all be gone.
                let _ = sender.send(Some(answer));
            })
            .map_err(|error| Failure::new(ErrorClass::LocalIo, error.to_string()))?;
        self.pending.replace(Some(receiver.clone()));
        Ok(receiver)
    }
}

fn failure(detail: String) -> Failure {
    Failure::new(ErrorClass::Dns, detail)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Condvar, Mutex};

    use plimsoll_measure::MonotonicClock;

    use super::*;

    /// A server that does not respond until it is released.
    static RELEASED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    static ASKED: AtomicU32 = AtomicU32::new(0);

    #[expect(clippy::unnecessary_wraps, reason = "the signature of a look-up")]
    fn dead(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        ASKED.fetch_add(1, Ordering::SeqCst);
        let released = RELEASED.0.lock().unwrap();
        drop(RELEASED.1.wait_while(released, |released| !*released).unwrap());
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))])
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_dead_server_is_asked_once_and_nothing_waits_for_it_longer_than_the_limit() {
        let (clock, endpoint) =
            (MonotonicClock::start(), Endpoint::new("name.invalid".to_owned(), 80));
        let resolver = Resolver::with(dead);
        let limit = Nanos::from_millis(20);
        let resolve = || resolver.resolve(&clock, &endpoint, limit);
        let own = runtime();
        let all = own.block_on(async { tokio::join!(resolve(), resolve(), resolve()) });
        for result in [all.0, all.1, all.2] {
            let failure = result.unwrap_err();
            assert_eq!(failure.class, ErrorClass::Dns);
            assert!(failure.detail.contains("within 20ms"), "{}", failure.detail);
        }
        // The runtime must end without waiting for the lookup; otherwise this test hangs.
        drop(own);
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
        *RELEASED.0.lock().unwrap() = true;
        RELEASED.1.notify_all();
        let late = runtime().block_on(resolver.resolve(&clock, &endpoint, Nanos::from_secs(20)));
        assert_eq!(late.unwrap().0, [SocketAddr::from(([127, 0, 0, 1], 80))]);
        assert_eq!(ASKED.load(Ordering::SeqCst), 1, "it was the same look-up");
    }

    static REFUSED: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_failure_is_kept_for_a_moment() {
        let clock = plimsoll_measure::ManualClock::default();
        let endpoint = Endpoint::new("name.invalid".to_owned(), 80);
        let resolver = Resolver::with(|_, _| {
            REFUSED.fetch_add(1, Ordering::SeqCst);
            Err(io::Error::other("no such host"))
        });
        let own = runtime();
        let ask = || own.block_on(resolver.resolve(&clock, &endpoint, Nanos::from_secs(20)));
        assert_eq!(ask().unwrap_err().detail, "no such host");
        assert_eq!(ask().unwrap_err().detail, "no such host");
        assert_eq!(REFUSED.load(Ordering::SeqCst), 1);
        clock.advance(FAILURE_TTL);
        assert!(ask().is_err());
        assert_eq!(REFUSED.load(Ordering::SeqCst), 2);
    }
}
