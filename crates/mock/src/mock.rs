//! A running mock: its threads and its public interface.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::counters::Stats;
use crate::error::MockError;
use crate::log::LogRecord;
use crate::spec::{LogTarget, MockConfig};
use crate::state::MockState;
use crate::{rx_timestamp, server};

/// Length of the accept queue: a load generator opens thousands of connections at once.
const BACKLOG: i32 = 4_096;

/// Pause of the acceptor if the system has no descriptors left.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(10);

/// A mock provider that serves on its own threads. It shuts down when it is dropped.
#[derive(Debug)]
pub struct Mock {
    state: Arc<MockState>,
    addr: SocketAddr,
    listener: Arc<TcpListener>,
    threads: Vec<JoinHandle<()>>,
}

impl Mock {
    /// Starts a mock and returns once it listens. Port 0 takes a free port, see [`Mock::addr`].
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
        let state = Arc::new(MockState::new(config)?);
        let mut mock =
            Self { state, addr: bound, listener: Arc::new(listener), threads: Vec::new() };
        mock.start(config.workers).map_err(MockError::Worker)?;
        Ok(mock)
    }

    fn start(&mut self, workers: u16) -> io::Result<()> {
        let (ready, readiness) = channel();
        let mut queues = Vec::new();
        for number in 0..workers {
            let (queue, connections) = unbounded_channel();
            queues.push(queue);
            let (state, ready) = (Arc::clone(&self.state), ready.clone());
            let thread = Builder::new().name(format!("mock-{number}"));
            self.threads.push(thread.spawn(move || run_worker(state, connections, &ready))?);
        }
        drop(ready);
        // Also ends if a thread dies without a report.
        let started = readiness.iter().take(workers.into()).collect::<io::Result<Vec<_>>>()?;
        if started.len() < usize::from(workers) {
            return Err(io::Error::other("a thread ended before it was ready"));
        }
        let (state, listener) = (Arc::clone(&self.state), Arc::clone(&self.listener));
        let thread = Builder::new().name("mock-accept".to_owned());
        self.threads.push(thread.spawn(move || accept(&listener, &state, &queues))?);
        Ok(())
    }

    /// The address it listens on.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The counts so far. A client may receive its response shortly before it counts as completed;
    /// after [`Mock::shutdown`] the counts are final.
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// The records of all requests that ended since the last call, in the order of their ends.
    /// Empty unless the configuration logs to memory. Shut down first to get all records.
    pub fn take_log(&self) -> Vec<LogRecord> {
        self.state.log.take()
    }

    /// Stops accepting, waits up to `drain` for requests in flight, closes all connections and
    /// finishes the log. Later calls have no effect.
    pub fn shutdown(&mut self) {
        self.state.stop();
        // Stops the acceptor and thereby the workers. Fails at a second shutdown.
        let _ = SockRef::from(&*self.listener).shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            // An error means that the thread panicked and has ended, too.
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

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Runs a worker. `ready` gets the result of its start; later failures just end it.
fn run_worker(
    state: Arc<MockState>,
    connections: UnboundedReceiver<TcpStream>,
    ready: &Sender<io::Result<()>>,
) {
    let result = server::runtime().and_then(|runtime| {
        runtime.block_on(server::run(state, connections, || {
            let _ = ready.send(Ok(()));
        }))
    });
    if result.is_err() {
        let _ = ready.send(result);
    }
}

/// Assigns connections to the workers in turn, until the mock stops.
fn accept(listener: &TcpListener, state: &MockState, queues: &[UnboundedSender<TcpStream>]) {
    for queue in queues.iter().cycle() {
        let stream = loop {
            let accepted = listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                Ok(stream)
            });
            match accepted {
                Ok(stream) => break stream,
                Err(_) if state.is_stopping() => return,
                // The pause delays no other work of this thread.
                Err(_) => std::thread::park_timeout(ACCEPT_BACKOFF),
            }
        };
        // If a worker has ended, its connections are closed.
        let _ = queue.send(stream);
    }
}
