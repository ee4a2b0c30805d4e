//! The running gateway: its threads, and what a caller can ask of it.

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

use crate::config::Source;
use crate::error::GatewayError;
use crate::shared::Shared;
use crate::spec::Spec;
use crate::worker::{self, Worker};

/// Connections that may wait for their acceptance: a load generator opens thousands at once.
const BACKLOG: i32 = 4_096;

/// A gateway, listening on threads of its own. Dropped, it shuts down.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Gateway {
    /// Starts a gateway; returns when it listens. Port 0 takes a free one, see [`Gateway::addr`].
    ///
    /// # Errors
    /// [`GatewayError`] says what keeps it from running, and which file or value is to blame.
    pub fn spawn(spec: &Spec) -> Result<Self, GatewayError> {
        Self::start(spec, Source::Given)
    }

    /// As [`Gateway::spawn`], with a configuration that came from a file and is read from there again by
    /// [`Gateway::reload`].
    ///
    /// # Errors
    /// As [`Gateway::spawn`].
    pub fn spawn_from(spec: &Spec, file: &Path) -> Result<Self, GatewayError> {
        Self::start(spec, Source::File(file.to_owned()))
    }

    fn start(spec: &Spec, source: Source) -> Result<Self, GatewayError> {
        let shared = Arc::new(Shared::new(spec, source)?);
        let (stop, stopped) = watch::channel(false);
        let refuse = |source| GatewayError::Listen { addr: spec.listen, source };
        let listeners = listen_all(spec.listen, spec.workers).map_err(refuse)?;
        let addr = listeners.first().map_or(Ok(spec.listen), StdTcpListener::local_addr);
        let addr = addr.map_err(GatewayError::Worker)?;
        let mut gateway = Self { shared, addr, stop, threads: Vec::new() };
        gateway.run(listeners, &stopped).map_err(GatewayError::Worker)?;
        Ok(gateway)
    }

    fn run(
        &mut self,
        listeners: Vec<StdTcpListener>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<()> {
        let (report, reports) = channel();
        let count = listeners.len();
        for (number, listener) in listeners.into_iter().enumerate() {
            let (shared, stop, report) = (Arc::clone(&self.shared), stop.clone(), report.clone());
            let body = move || serve(shared, listener, stop, (number == 0, report));
            self.threads.push(Builder::new().name(format!("gateway-{number}")).spawn(body)?);
        }
        drop(report);
        let heard = reports.iter().take(count).collect::<io::Result<Vec<()>>>()?;
        if heard.len() == count {
            Ok(())
        } else {
            Err(io::Error::other("a thread ended before it was ready"))
        }
    }

    /// The address it listens on.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Requests that were served so far.
    pub fn served(&self) -> u64 {
        self.shared.meters.served()
    }

    /// Reads the configuration's file again. Listener, workers, TLS, store and audit stay as they are until
    /// the gateway is started anew.
    ///
    /// # Errors
    /// What is wrong with the file; then the old configuration stays in force.
    pub fn reload(&self) -> Result<(), GatewayError> {
        self.shared.reload().map(drop)
    }

    /// Accepts nothing more, gives requests in flight the configured time to end, and closes all
    /// connections. Later calls do nothing.
    pub fn shutdown(&mut self) {
        // It fails when no worker listens any more.
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // A worker that died has nothing left to be waited for.
            let _ = thread.join();
        }
        self.shared.close();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// One listener for each worker, over which the kernel spreads connections. Shared ports would also let a second gateway in
/// without a word: whether the address is free is tried without sharing first.
fn listen_all(addr: SocketAddr, workers: u16) -> io::Result<Vec<StdTcpListener>> {
    let first = bind(addr, false)?;
    if workers == 1 {
        return Ok(vec![ready(first)?]);
    }
    let addr = first.local_addr()?.as_socket().unwrap_or(addr);
    drop(first);
    (0..workers).map(|_| bind(addr, true).and_then(ready)).collect()
}

fn bind(addr: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

fn ready(socket: Socket) -> io::Result<StdTcpListener> {
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn serve(
    shared: Arc<Shared>,
    listener: StdTcpListener,
    stop: watch::Receiver<bool>,
    (first, report): (bool, Sender<io::Result<()>>),
) {
    let runtime = match worker::runtime() {
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
        let worker = Rc::new(Worker::new(shared).await);
        // Nobody waits for it when the other workers failed.
        let _ = report.send(Ok(()));
        worker.run(listener, stop, first).await;
    });
}
