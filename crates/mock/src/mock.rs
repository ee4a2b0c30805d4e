//! The running mock: its threads, and what a caller can ask of it.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener, TcpStream as StdTcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::counters::Stats;
use crate::error::MockError;
use crate::log::LogRecord;
use crate::note;
use crate::shared::Shared;
use crate::spec::{LogTarget, MockConfig};
use crate::worker::{self, Start};

/// Connections that may wait for their acceptance: a load generator opens thousands at once.
const BACKLOG: i32 = 4_096;

/// How long the acceptor rests when the system has no descriptor left.
const ACCEPT_REST: Duration = Duration::from_millis(10);

/// A mock provider, listening on threads of its own. Dropped, it shuts down.
#[derive(Debug)]
pub struct Mock {
    shared: Arc<Shared>,
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Mock {
    /// Starts a mock; returns when it listens. Port 0 takes a free one, see [`Mock::addr`].
    ///
    /// # Errors
    /// [`MockError::Config`] for values that make no sense, [`MockError::Listen`] where the address
    /// cannot be had, [`MockError::Log`] where the log cannot be written, [`MockError::Worker`] where
    /// the system gives no threads or timers.
    pub fn spawn(config: &MockConfig, addr: SocketAddr) -> Result<Self, MockError> {
        config.check()?;
        let listener = listen(addr).map_err(|source| MockError::Listen { addr, source })?;
        if config.log != LogTarget::None {
            note::ask(&listener);
        }
        let bound = listener.local_addr().map_err(|source| MockError::Listen { addr, source })?;
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared::new(config)?);
        let mut mock = Self { shared, addr: bound, stop, threads: Vec::new() };
        mock.start(config, listener, &stopped).map_err(MockError::Worker)?;
        Ok(mock)
    }

    fn start(
        &mut self,
        config: &MockConfig,
        listener: StdTcpListener,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<()> {
        let (report, reports) = channel();
        let mut outlets = Vec::new();
        for number in 0..config.workers {
            let (outlet, connections) = unbounded_channel();
            outlets.push(outlet);
            let start = self.worker_start(config, connections, stop);
            let report = report.clone();
            self.thread(format!("mock-{number}"), move || run_worker(start, &report))?;
        }
        let stop = stop.clone();
        self.thread("mock-accept".to_owned(), move || {
            run_acceptor(listener, &outlets, stop, &report);
        })?;
        // Ends with an error, too, if a thread dies without a word.
        let heard =
            reports.iter().take(usize::from(config.workers) + 1).collect::<io::Result<Vec<_>>>()?;
        if heard.len() > usize::from(config.workers) {
            Ok(())
        } else {
            Err(io::Error::other("a thread ended before it was ready"))
        }
    }

    fn worker_start(
        &self,
        config: &MockConfig,
        connections: UnboundedReceiver<StdTcpStream>,
        stop: &watch::Receiver<bool>,
    ) -> Start {
        Start {
            shared: Arc::clone(&self.shared),
            spin: config.spin.as_nanos(),
            drain: config.drain.as_nanos(),
            connections,
            stop: stop.clone(),
        }
    }

    fn thread(&mut self, name: String, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(Builder::new().name(name).spawn(body)?);
        Ok(())
    }

    /// The address it listens on.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The counts so far. A client can have its answer a moment before it is counted as completed; after
    /// [`Mock::shutdown`] all is counted.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The ground truth of all requests that have ended since the last call, in the order in which
    /// they ended; empty unless the configuration logs to memory. Shut down first to have all.
    pub fn take_log(&self) -> Vec<LogRecord> {
        self.shared.log.take()
    }

    /// Accepts nothing more, gives requests in flight the configured time to end, closes all
    /// connections and writes the log out. Later calls do nothing.
    pub fn shutdown(&mut self) {
        self.shared.stop();
        // It fails when no worker listens any more.
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // A worker that died has nothing left to be waited for.
            let _ = thread.join();
        }
        self.shared.log.close();
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn listen(addr: SocketAddr) -> io::Result<StdTcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

type Report = Sender<io::Result<()>>;

/// Failures after readiness end the thread; nobody waits for a report then.
fn report_error(report: &Report, result: io::Result<()>) {
    if result.is_err() {
        let _ = report.send(result);
    }
}

fn run_worker(start: Start, report: &Report) {
    let ready = || {
        let _ = report.send(Ok(()));
    };
    let result = worker::runtime().and_then(|runtime| runtime.block_on(worker::run(start, ready)));
    report_error(report, result);
}

fn run_acceptor(
    listener: StdTcpListener,
    outlets: &[UnboundedSender<StdTcpStream>],
    mut stop: watch::Receiver<bool>,
    report: &Report,
) {
    let result = worker::runtime().and_then(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let _ = report.send(Ok(()));
            tokio::select! {
                () = accept(&listener, outlets) => {}
                _ = stop.wait_for(|stopped| *stopped) => {}
            }
            Ok(())
        })
    });
    report_error(report, result);
}

/// Hands connections to the workers in turn, so that each has its equal share of them.
async fn accept(listener: &TcpListener, outlets: &[UnboundedSender<StdTcpStream>]) {
    for outlet in outlets.iter().cycle() {
        let stream = loop {
            match listener.accept().await.and_then(|(stream, _)| stream.into_std()) {
                Ok(stream) => break stream,
                // This thread has no other work that the pause could delay.
                Err(_) => std::thread::park_timeout(ACCEPT_REST),
            }
        };
        // A worker that is gone takes its share of the connections with it.
        let _ = outlet.send(stream);
    }
}
