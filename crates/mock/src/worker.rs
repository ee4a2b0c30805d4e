//! One thread with one event loop: connections stay on the worker that they were given to.

use std::io;
use std::net::TcpStream as StdTcpStream;
use std::rc::Rc;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::service;
use crate::shared::Shared;
use crate::tap::{Tap, Tapped};
use crate::timer::Timer;

/// How often a stopping worker looks whether all is done.
const DRAIN_STEP: u64 = 1_000_000;

/// After this many task turns the worker looks at its sockets and its timer, even when tasks are
/// still waiting for a turn. tokio's default of 61 would let deadlines slip by some 100 us under load.
const TURNS_PER_LOOK: u32 = 16;

/// What the tasks of one worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    timer: Rc<Timer>,
}

/// What a worker is started with.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spin: u64,
    /// How long requests in flight may take at the end, in nanoseconds.
    pub(crate) drain: u64,
    pub(crate) connections: UnboundedReceiver<StdTcpStream>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Worker {
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn timer(&self) -> Rc<Timer> {
        Rc::clone(&self.timer)
    }

    /// Waits for a moment of the monotonic clock.
    pub(crate) async fn wait_until(&self, at: u64) {
        if at > self.shared.clock.now() {
            self.timer.sleep_until(at).await;
        }
    }
}

/// A single-threaded runtime with sockets and without tokio's timer.
///
/// # Errors
/// The system's, for want of descriptors.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .event_interval(TURNS_PER_LOOK)
        .build_local(LocalOptions::default())
}

/// Runs a worker until it is told to stop. What is still open then is dropped, and its connections
/// closed.
///
/// # Errors
/// The system's, for want of descriptors.
pub(crate) async fn run(start: Start, ready: impl FnOnce()) -> io::Result<()> {
    let Start { shared, spin, drain, mut connections, mut stop } = start;
    let timer = Rc::new(Timer::new(shared.clock, spin)?);
    let worker = Rc::new(Worker { shared, timer: Rc::clone(&timer) });
    spawn_local(async move { timer.run().await });
    let host = Rc::clone(&worker);
    spawn_local(async move {
        while let Some(stream) = connections.recv().await {
            spawn_local(attend(Rc::clone(&host), stream));
        }
    });
    ready();
    // An error means that the mock itself is gone, which is a reason to stop as well.
    let _ = stop.wait_for(|stopped| *stopped).await;
    worker.finish(drain).await;
    Ok(())
}

impl Worker {
    async fn finish(&self, drain: u64) {
        let clock = self.shared.clock;
        let limit = clock.now().saturating_add(drain);
        while self.shared.counters.in_flight.read() > 0 && clock.now() < limit {
            self.timer.sleep_until(clock.now() + DRAIN_STEP).await;
        }
    }
}

/// Counts a connection as open while it lives.
struct Open(Rc<Worker>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.shared.counters.connections_open.down();
    }
}

/// Serves one connection to its end.
async fn attend(worker: Rc<Worker>, stream: StdTcpStream) {
    let number = worker.shared.counters.connections.up();
    worker.shared.counters.connections_open.up();
    let _open = Open(Rc::clone(&worker));
    // A connection that cannot be registered is closed, which its client sees.
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    // Without it the kernel would hold back small events of a stream; it fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    let tap = Rc::new(Tap::new(worker.shared.clock, number, worker.shared.log.is_on()));
    let io = Tapped::new(stream, Rc::clone(&tap));
    let service =
        service_fn(move |request| service::serve(Rc::clone(&worker), Rc::clone(&tap), request));
    // One buffer for each write: most are smaller than what several buffers cost the kernel.
    // Every error here is either the client's doing or ours on purpose; the exchange has logged it.
    let _ = http1::Builder::new().writev(false).serve_connection(io, service).await;
}
