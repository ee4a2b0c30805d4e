//! A server whose TLS handshake takes a known time, and whose connections serve a known number of
//! requests.

use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_runner::time::sleep;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;
use serde::{Deserialize, Serialize};

use super::{GroundTruth, RunningServer, read_request, serve_connections};
use crate::error::CalibrateError;
use crate::server;

/// Behaviour of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PhasedSpec {
    /// The delay of the server's part of the TLS handshake; `None` for no TLS.
    pub(crate) handshake: Option<Duration>,
    /// Requests that a connection serves before it is closed.
    pub(crate) requests_per_connection: u64,
}

/// The records of the server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PhasedLog {
    /// Connections that brought a request.
    pub(crate) connections: u64,
    /// Requests answered.
    pub(crate) requests: u64,
    /// Time from each client's hello to its last handshake message, by the kernel's timestamps, in
    /// nanoseconds.
    pub(crate) handshakes: Vec<u64>,
}

type SharedLog = Arc<Mutex<PhasedLog>>;

/// The running server.
#[derive(Debug)]
struct PhasedServer {
    addr: SocketAddr,
    log: SharedLog,
}

/// The state that all connections share.
#[derive(Clone)]
struct ServerState {
    spec: PhasedSpec,
    tls: Arc<ServerConfig>,
    log: SharedLog,
}

pub(super) fn start(addr: SocketAddr, spec: PhasedSpec) -> io::Result<Box<dyn RunningServer>> {
    let log = SharedLog::default();
    let state = ServerState { spec, tls: Arc::new(tls()?), log: Arc::clone(&log) };
    let addr = serve_connections(addr, move |stream| state.serve(stream))?;
    Ok(Box::new(PhasedServer { addr, log }))
}

impl RunningServer for PhasedServer {
    fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn finish(self: Box<Self>) -> Result<GroundTruth, CalibrateError> {
        let phased = self.log.lock().map(|log| log.clone()).unwrap_or_default();
        Ok(GroundTruth { phased, ..GroundTruth::default() })
    }
}

/// A self-signed certificate for the loopback address.
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

impl ServerState {
    fn count(&self, change: impl FnOnce(&mut PhasedLog)) {
        if let Ok(mut log) = self.log.lock() {
            change(&mut log);
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        match self.spec.handshake {
            None => self.respond(stream),
            Some(delay) => self.respond(self.handshake(stream, delay)?),
        }
    }

    fn handshake(
        &self,
        mut stream: TcpStream,
        delay: Duration,
    ) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
        let mut tls = ServerConnection::new(Arc::clone(&self.tls)).map_err(io::Error::other)?;
        let hello = server::wait_for_bytes(&stream)?;
        sleep(delay);
        while tls.wants_read() && !tls.wants_write() {
            tls.read_tls(&mut stream)?;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        while tls.wants_write() {
            tls.write_tls(&mut stream)?;
        }
        // The client's last handshake message comes together with its first request.
        let took = server::wait_for_bytes(&stream)?.saturating_sub(hello);
        self.count(|log| log.handshakes.push(took));
        Ok(StreamOwned::new(tls, stream))
    }

    fn respond(&self, stream: impl io::Read + io::Write) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        for left in (0..self.spec.requests_per_connection).rev() {
            if !read_request(&mut stream)? {
                return Ok(());
            }
            let connection = if left == 0 { "close" } else { "keep-alive" };
            let first = left + 1 == self.spec.requests_per_connection;
            self.count(|log| {
                log.requests += 1;
                log.connections += u64::from(first);
            });
            let stream = stream.get_mut();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: {connection}\r\n\r\nok"
            )?;
            stream.flush()?;
        }
        Ok(())
    }
}
