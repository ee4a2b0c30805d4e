//! Reference servers: they record the truth, and share no code with the client.
//!
//! Each is started from a [`ServerSpec`]: in a separate process if the tool's binary is known, so
//! that its CPU time is not the generator's, else in this one.

mod null_server;
mod phased_server;
mod rx_timestamp;
mod scripted_server;
mod server_process;

use std::fmt::Debug;
use std::io::{self, BufRead};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{Builder, JoinHandle};

pub(crate) use null_server::{NullSpec, Pause, ReceivedRequest};
pub(crate) use phased_server::{PhasedLog, PhasedSpec};
use plimsoll_mock::{LogRecord, Mock, MockConfig};
pub(crate) use scripted_server::{Script, Step};
use serde::{Deserialize, Serialize};
pub(crate) use server_process::{ServerProcess, serve};

use crate::error::CalibrateError;

/// Behaviour of a reference server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerSpec {
    /// The mock provider, by its configuration.
    Mock(Box<MockConfig>),
    /// Answers at once, and notes when the kernel received each request.
    Null(NullSpec),
    /// Plays a scripted stream, write by write.
    Scripted(Script),
    /// Takes its time for the TLS handshake, and closes connections after a number of requests.
    Phased(PhasedSpec),
}

/// The records of a reference server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GroundTruth {
    /// Log of the mock.
    pub(crate) requests: Vec<LogRecord>,
    /// Requests that the null server received.
    pub(crate) received: Vec<ReceivedRequest>,
    /// Log of the phased server.
    pub(crate) phased: PhasedLog,
}

/// A reference server.
pub(crate) trait RunningServer: Debug + Send {
    /// Where it listens.
    fn addr(&self) -> SocketAddr;

    /// Ends it, and returns its records.
    fn finish(self: Box<Self>) -> Result<GroundTruth, CalibrateError>;
}

impl RunningServer for Mock {
    fn addr(&self) -> SocketAddr {
        self.addr()
    }

    fn finish(mut self: Box<Self>) -> Result<GroundTruth, CalibrateError> {
        self.shutdown();
        Ok(GroundTruth { requests: self.take_log(), ..GroundTruth::default() })
    }
}

impl ServerSpec {
    /// Starts it on a free port of the loopback interface.
    pub(crate) fn start(self) -> Result<Box<dyn RunningServer>, CalibrateError> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let started = match self {
            Self::Mock(config) => return Ok(Box::new(Mock::spawn(&config, any)?)),
            Self::Null(spec) => null_server::start(any, spec),
            Self::Scripted(script) => scripted_server::start(any, script),
            Self::Phased(spec) => phased_server::start(any, spec),
        };
        started.map_err(CalibrateError::Server)
    }
}

/// A reference server of an experiment, in this process or in a separate one.
#[derive(Debug)]
pub(crate) struct Server(pub(crate) Box<dyn RunningServer>);

impl Server {
    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.0.addr()
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// Ends it, and returns its records.
    pub(crate) fn finish(self) -> Result<GroundTruth, CalibrateError> {
        self.0.finish()
    }
}

/// Starts a named thread.
fn spawn_named<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Listens, with the kernel's timestamps, and serves each connection in a thread of its own. The
/// threads end with their connections, and the process. Returns where it listens.
fn serve_connections(
    addr: SocketAddr,
    serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(addr)?;
    rx_timestamp::enable(&listener)?;
    let addr = listener.local_addr()?;
    spawn_named("accept", move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            // An error closes the connection, and the client sees it.
            let _ = spawn_named("connection", move || {
                stream.set_nodelay(true)?;
                serve(stream)
            });
        }
    })?;
    Ok(addr)
}

/// Reads a request; false if the client closed the connection.
fn read_request(reader: &mut impl BufRead) -> io::Result<bool> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).map(|()| true)
}
