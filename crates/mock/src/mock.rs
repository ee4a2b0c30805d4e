//! A running mock: its threads and its public interface.

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
use crate::rx_timestamp;
use crate::server::{self, WorkerParams};
use crate::spec::{LogTarget, MockConfig};
use crate::state::MockState;

/// Connections that may wait to be accepted: a load generator opens thousands at once.
const BACKLOG: i32 = 4_096;

/// Pause of the acceptor when the system has no descriptors left.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(10);

/// A mock provider that serves on its own threads. It shuts down when it is dropped.
#[derive(Debug)]
pub struct Mock {
    state: Arc<MockState>,
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Mock {
    /// Starts a mock and returns when it listens. Port 0 takes a free port, see [`Mock::addr`].
    ///
    /// # Errors
    /// [`MockError::Config`] for invalid values, [`MockError::Listen`] if the address cannot be
    /// listened on, [`MockError::Log`] if the log cannot be written, [`MockError::Worker`] if the
    /// system refuses threads or timers.
    pub fn spawn(config: &MockConfig, addr: SocketAddr) -> Result<Self, MockError> {
        config.check()?;
        let listener = listen(addr).map_err(|source| MockError::Listen { addr, source })?;
        if config.log != LogTarget::None {
            rx_timestamp::enable(&listener);
        }
        let bound = listener.local_addr().map_err(|source| MockError::Listen { addr, source })?;
        let (stop, stopped) = watch::channel(false);
        let state = Arc::new(MockState::new(config)?);
        let mut mock = Self { state, addr: bound, stop, threads: Vec::new() };
        mock.start(config, listener, &stopped).map_err(MockError::Worker)?;
        Ok(mock)
    }

    fn start(
        &mut self,
        config: &MockConfig,
        listener: StdTcpListener,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<()> {
        let (ready, readiness) = channel();
        let mut queues = Vec::new();
        for number in 0..config.workers {
            let (queue, connections) = unbounded_channel();
            queues.push(queue);
            let params = self.worker_params(config, connections, stop);
            let ready = ready.clone();
            self.spawn_thread(format!("mock-{number}"), move || run_worker(params, &ready))?;
        }
        let stop = stop.clone();
        self.spawn_thread("mock-accept".to_owned(), move || {
            run_acceptor(listener, &queues, stop, &ready);
        })?;
        // Ends early, too, if a thread dies without a report.
        let threads = usize::from(config.workers) + 1;
        let started = readiness.iter().take(threads).collect::<io::Result<Vec<_>>>()?;
        if started.len() == threads {
            Ok(())
        } else {
            Err(io::Error::other("a thread ended before it was ready"))
        }
    }

    fn worker_params(
        &self,
        config: &MockConfig,
        connections: UnboundedReceiver<StdTcpStream>,
        stop: &watch::Receiver<bool>,
    ) -> WorkerParams {
        WorkerParams {
            state: Arc::clone(&self.state),
            spin: config.spin.as_nanos(),
            drain: config.drain.as_nanos(),
            connections,
            stop: stop.clone(),
        }
    }

    fn spawn_thread(
        &mut self,
        name: String,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.threads.push(Builder::new().name(name).spawn(body)?);
        Ok(())
    }

    /// The address it listens on.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The counts so far. A client can have its response a moment before it is counted as
    /// completed; after [`Mock::shutdown`] the counts are complete.
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// The ground truth of all requests that have ended since the last call, in the order in which
    /// they ended. Empty unless the configuration logs to memory. Shut down first to get all
    /// records.
    pub fn take_log(&self) -> Vec<LogRecord> {
        self.state.log.take()
    }

    /// Stops accepting, gives requests in flight the configured `drain` time to end, closes all
    /// connections and finishes the log. Later calls do nothing.
    pub fn shutdown(&mut self) {
        self.state.stop();
        // It fails if all threads have ended already.
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // An error means that the thread panicked, so it has ended as well.
            let _ = thread.join();
        }
        self.state.log.close();
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

/// Receives `Ok` from each thread that is ready, or the error that kept it from starting.
type Readiness = Sender<io::Result<()>>;

/// Reports an error. A thread that fails later just ends: nobody listens any more.
fn report_error(ready: &Readiness, result: io::Result<()>) {
    if result.is_err() {
        let _ = ready.send(result);
    }
}

fn run_worker(params: WorkerParams, ready: &Readiness) {
    let result = server::runtime().and_then(|runtime| {
        runtime.block_on(server::run(params, || {
            let _ = ready.send(Ok(()));
        }))
    });
    report_error(ready, result);
}

fn run_acceptor(
    listener: StdTcpListener,
    queues: &[UnboundedSender<StdTcpStream>],
    mut stop: watch::Receiver<bool>,
    ready: &Readiness,
) {
    let result = server::runtime().and_then(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let _ = ready.send(Ok(()));
            tokio::select! {
                () = accept(&listener, queues) => {}
                _ = stop.wait_for(|stopped| *stopped) => {}
            }
            Ok(())
        })
    });
    report_error(ready, result);
}

/// Gives connections to the workers in turn, so that each serves an equal share.
async fn accept(listener: &TcpListener, queues: &[UnboundedSender<StdTcpStream>]) {
    for queue in queues.iter().cycle() {
        let stream = loop {
            match listener.accept().await.and_then(|(stream, _)| stream.into_std()) {
                Ok(stream) => break stream,
                // This thread has no other work that the pause could delay.
                Err(_) => std::thread::park_timeout(ACCEPT_BACKOFF),
            }
        };
        // If a worker has ended, its connections are closed.
        let _ = queue.send(stream);
    }
}
