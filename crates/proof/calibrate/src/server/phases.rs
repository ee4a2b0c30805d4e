//! A server whose TLS handshake takes a known time, and whose connections serve a known number of requests.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;
use serde::{Deserialize, Serialize};

use super::note;
use crate::wait;

/// How the server behaves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PhasesSpec {
    /// How long the server's part of the TLS handshake is held back; `None` for no TLS.
    pub(crate) handshake: Option<Duration>,
    /// Requests that a connection serves before it is closed.
    pub(crate) requests_per_connection: u64,
}

/// What the server did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Exchanged {
    /// Connections accepted.
    pub(crate) connections: u64,
    /// Requests answered.
    pub(crate) requests: u64,
    /// From the arrival of each client's hello to that of its last word, by the kernel's notes, in nanoseconds.
    pub(crate) handshakes: Vec<u64>,
}

type Log = Arc<Mutex<Exchanged>>;

/// The running server. Its threads end with their connections, and the process.
#[derive(Debug)]
pub(crate) struct Phases {
    addr: SocketAddr,
    log: Log,
}

/// What every connection needs.
#[derive(Clone)]
struct Shared {
    spec: PhasesSpec,
    tls: Arc<ServerConfig>,
    log: Log,
}

impl Phases {
    pub(crate) fn start(addr: SocketAddr, spec: PhasesSpec) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        note::ask(&listener)?;
        let addr = listener.local_addr()?;
        let log = Log::default();
        let shared = Shared { spec, tls: Arc::new(tls()?), log: Arc::clone(&log) };
        super::thread("phases", move || accept(&listener, &shared))?;
        Ok(Self { addr, log })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn finish(self) -> Exchanged {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }
}

/// A certificate for the loopback address, made on the spot and trusted by nobody.
fn tls() -> io::Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let made = made.map_err(io::Error::other)?;
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth();
    config.with_single_cert(vec![made.cert.der().clone()], key).map_err(io::Error::other)
}

fn accept(listener: &TcpListener, shared: &Shared) {
    for stream in listener.incoming().map_while(Result::ok) {
        shared.count(|log| log.connections += 1);
        let shared = shared.clone();
        // A client that breaks a connection, or one for whom there is no thread, finds out by itself.
        let _ = super::thread("connection", move || shared.serve(stream));
    }
}

impl Shared {
    fn count(&self, change: impl FnOnce(&mut Exchanged)) {
        if let Ok(mut log) = self.log.lock() {
            change(&mut log);
        }
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        match self.spec.handshake {
            None => self.answer(&mut stream),
            Some(delay) => self.answer(&mut self.shake_hands(stream, delay)?),
        }
    }

    fn shake_hands(
        &self,
        mut stream: TcpStream,
        delay: Duration,
    ) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
        let mut tls = ServerConnection::new(Arc::clone(&self.tls)).map_err(io::Error::other)?;
        let hello = note::await_arrival(&stream)?;
        wait::rest(delay);
        while tls.wants_read() && !tls.wants_write() {
            tls.read_tls(&mut stream)?;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        while tls.wants_write() {
            tls.write_tls(&mut stream)?;
        }
        // The client's last word comes together with its first request.
        let took = note::await_arrival(&stream)?.saturating_sub(hello);
        self.count(|log| log.handshakes.push(took));
        Ok(StreamOwned::new(tls, stream))
    }

    fn answer(&self, stream: &mut (impl io::Read + io::Write)) -> io::Result<()> {
        for left in (0..self.spec.requests_per_connection).rev() {
            if !read_head(stream)? {
                return Ok(());
            }
            let manner = if left == 0 { "close" } else { "keep-alive" };
            self.count(|log| log.requests += 1);
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: {manner}\r\n\r\nok"
            )?;
            stream.flush()?;
        }
        Ok(())
    }
}

/// Returns false where the client has gone.
fn read_head(stream: &mut impl io::Read) -> io::Result<bool> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(false);
        }
        head.push(byte[0]);
    }
    Ok(true)
}
