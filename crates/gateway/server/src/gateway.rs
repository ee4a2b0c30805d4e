//! The running gateway: its threads, and the operations on it.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::assembly::config::Source;
use crate::assembly::spec::Spec;
use crate::config::error::GatewayError;
use crate::exchange::state::GatewayState;
use crate::exchange::worker::Worker;
use crate::layers::admin::ListenerRole;
use crate::worker::server;

/// Length of the accept queue: a load generator opens thousands of connections at once.
const BACKLOG: i32 = 4_096;

/// A running gateway with its own threads. It shuts down when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    state: Arc<GatewayState>,
    addr: SocketAddr,
    admin_addr: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Gateway {
    /// Starts a gateway and returns once it listens. Port 0 takes a free port, see
    /// [`Gateway::addr`].
    ///
    /// # Errors
    /// [`GatewayError`] names the file or value that prevents it.
    pub fn spawn(spec: &Spec) -> Result<Self, GatewayError> {
        Self::start(spec, Source::Given)
    }

    /// Like [`Gateway::spawn`], with a configuration from a file, which [`Gateway::reload`] reads
    /// again.
    ///
    /// # Errors
    /// As [`Gateway::spawn`].
    pub fn spawn_from(spec: &Spec, file: &Path) -> Result<Self, GatewayError> {
        Self::start(spec, Source::File(file.to_owned()))
    }

    /// Runs all checks of a start, including files, except for the listening addresses.
    ///
    /// # Errors
    /// As [`Gateway::spawn`].
    pub fn check(spec: &Spec) -> Result<(), GatewayError> {
        GatewayState::check(spec)
    }

    fn start(spec: &Spec, source: Source) -> Result<Self, GatewayError> {
        let state = Arc::new(GatewayState::new(spec, source)?);
        let (stop, stopped) = watch::channel(false);
        let listeners = listen_all(spec.listen, spec.workers)?;
        let addr = local_addr(&listeners, spec.listen)?;
        let admin = spec.admin.listen.map_or_else(|| Ok(Vec::new()), |addr| listen_all(addr, 1))?;
        let admin_addr = spec.admin.listen.map(|addr| local_addr(&admin, addr)).transpose()?;
        let mut gateway = Self { state, addr, admin_addr, stop, threads: Vec::new() };
        let all = listeners.into_iter().map(|listener| (listener, ListenerRole::Clients));
        let all =
            all.chain(admin.into_iter().map(|listener| (listener, ListenerRole::Administration)));
        gateway.run(all.collect(), &stopped).map_err(GatewayError::Worker)?;
        Ok(gateway)
    }

    fn run(
        &mut self,
        listeners: Vec<(StdTcpListener, ListenerRole)>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<()> {
        let (report, reports) = channel();
        let count = listeners.len();
        for (number, (listener, role)) in listeners.into_iter().enumerate() {
            let (state, stop, report) = (Arc::clone(&self.state), stop.clone(), report.clone());
            let name = match role {
                ListenerRole::Clients => format!("gateway-{number}"),
                ListenerRole::Administration => "gateway-admin".to_owned(),
            };
            let thread = Builder::new().name(name).spawn(move || {
                run_worker(state, listener, role, stop, number == 0, &report);
            });
            self.threads.push(thread?);
        }
        drop(report);
        let ready = reports.iter().take(count).collect::<io::Result<Vec<()>>>()?;
        if ready.len() == count {
            Ok(())
        } else {
            Err(io::Error::other("a thread ended before it was ready"))
        }
    }

    /// The address it listens on.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address of the administration, if it has one of its own.
    pub const fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin_addr
    }

    /// Requests served so far.
    pub fn served(&self) -> u64 {
        self.state.metrics.served.get()
    }

    /// Rows of the audit and the access log that are not yet written. After [`Gateway::shutdown`]
    /// they are lost: the queue was full, or the file or store failed.
    pub fn lost_rows(&self) -> u64 {
        self.state.request_log.lost()
    }

    /// Reads the configuration's file again, and the TLS files that it names.
    ///
    /// # Errors
    /// The problems of the file, or [`GatewayError::Restart`]; then the old configuration stays in
    /// force.
    pub fn reload(&self) -> Result<(), GatewayError> {
        self.state.reload().map(drop)
    }

    /// Stops accepting connections, gives requests in flight the configured time to finish, and
    /// closes all connections. Later calls do nothing.
    pub fn shutdown(&mut self) {
        // Fails if no worker is left.
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // A panicked worker needs no cleanup.
            let _ = thread.join();
        }
        self.state.request_log.close();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// One listener for each worker; the kernel distributes connections among them. Because port
/// sharing would silently admit a second gateway, the address is first bound without sharing.
fn listen_all(addr: SocketAddr, workers: u16) -> Result<Vec<StdTcpListener>, GatewayError> {
    try_listen_all(addr, workers).map_err(|source| GatewayError::Listen { addr, source })
}

fn try_listen_all(addr: SocketAddr, workers: u16) -> io::Result<Vec<StdTcpListener>> {
    let first = bind(addr, false)?;
    if workers == 1 {
        return Ok(vec![listen(first)?]);
    }
    let addr = first.local_addr()?.as_socket().unwrap_or(addr);
    drop(first);
    (0..workers).map(|_| bind(addr, true).and_then(listen)).collect()
}

fn local_addr(
    listeners: &[StdTcpListener],
    wanted: SocketAddr,
) -> Result<SocketAddr, GatewayError> {
    let addr = listeners.first().map_or(Ok(wanted), StdTcpListener::local_addr);
    addr.map_err(GatewayError::Worker)
}

fn bind(addr: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

fn listen(socket: Socket) -> io::Result<StdTcpListener> {
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The body of a worker thread.
fn run_worker(
    state: Arc<GatewayState>,
    listener: StdTcpListener,
    role: ListenerRole,
    stop: watch::Receiver<bool>,
    is_first: bool,
    report: &Sender<io::Result<()>>,
) {
    let runtime = match server::runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = report.send(Err(error));
            return;
        }
    };
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener);
        let listener = match listener {
            Ok(listener) => listener,
            Err(error) => {
                let _ = report.send(Err(error));
                return;
            }
        };
        let worker = Rc::new(Worker::new(state, role).await);
        // No receiver is left after another worker failed.
        let _ = report.send(Ok(()));
        server::run(worker, listener, stop, is_first).await;
    });
}
