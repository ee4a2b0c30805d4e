//! The event loop of a worker thread, which serves its connections.

use std::future::poll_fn;
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use hyper::rt::Write as _;
use hyper::server::conn::http1::{self, Parts};
use hyper::service::service_fn;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;

use crate::service;
use crate::state::MockState;
use crate::timed_io::{ConnectionTimes, TimedStream};
use crate::timer::Timer;
use crate::websocket::Chat;
use crate::worker::Worker;

/// Nanoseconds between two checks for requests in flight during shutdown.
const DRAIN_POLL: u64 = 1_000_000;

/// Task polls before the event loop checks its sockets and timer again, even if tasks are ready.
/// With tokio's default of 61, deadlines slip by some 100 us under load.
const POLLS_PER_EVENT_CHECK: u32 = 16;

/// A single-threaded runtime with sockets and without tokio's timer.
///
/// # Errors
/// The system has no descriptors left.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .event_interval(POLLS_PER_EVENT_CHECK)
        .build_local(LocalOptions::default())
}

/// Serves connections until the acceptor stops. Then requests in flight get the drain time; the
/// remaining ones are dropped, and all connections are closed.
///
/// # Errors
/// The system has no descriptors left.
pub(crate) async fn run(
    state: Arc<MockState>,
    mut connections: UnboundedReceiver<StdTcpStream>,
    ready: impl FnOnce(),
) -> io::Result<()> {
    let drain = state.config.drain.as_nanos();
    let timer = Rc::new(Timer::new(state.clock, state.config.spin.as_nanos())?);
    let worker = Rc::new(Worker { state, timer: Rc::clone(&timer) });
    spawn_local(async move { timer.run().await });
    ready();
    while let Some(stream) = connections.recv().await {
        spawn_local(serve_connection(Rc::clone(&worker), stream));
    }
    wait_for_requests(&worker, drain).await;
    Ok(())
}

/// Waits until no request is in flight, for `drain` nanoseconds at most.
async fn wait_for_requests(worker: &Worker, drain: u64) {
    let (clock, counters) = (worker.state.clock, &worker.state.counters);
    let limit = clock.now().saturating_add(drain);
    while counters.in_flight.get() > 0 && clock.now() < limit {
        worker.wait_until(clock.now() + DRAIN_POLL).await;
    }
}

/// Counts a connection as open until it is dropped.
struct OpenConnection(Rc<Worker>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.state.counters.connections_open.decrement();
    }
}

/// Serves one connection to its end.
async fn serve_connection(worker: Rc<Worker>, stream: StdTcpStream) {
    let state = &worker.state;
    let number = state.counters.connections.increment();
    state.counters.connections_open.increment();
    let _open = OpenConnection(Rc::clone(&worker));
    // A connection that cannot be registered is closed, which its client notices.
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    // Without it the kernel delays the small events of a stream. It fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    let times = Rc::new(ConnectionTimes::new(state.clock, number, state.log.is_on()));
    let io = TimedStream::new(stream, Rc::clone(&times));
    let service =
        service_fn(|request| service::serve(Rc::clone(&worker), Rc::clone(&times), request));
    // One buffer for each write, because copying small chunks is cheaper than a vectored write.
    let served = http1::Builder::new().writev(false).serve_connection(io, service);
    // Errors are ignored: the client caused them or the mock injected them, and the exchange has
    // logged its end.
    let Ok(Parts { mut io, read_buf, .. }) = served.without_shutdown().await else { return };
    match times.take_switch() {
        Some(accepted) => {
            Chat::new(Rc::clone(&worker), Rc::clone(&times), accepted, io, &read_buf).run().await;
        }
        None => {
            let _ = poll_fn(|cx| Pin::new(&mut io).poll_shutdown(cx)).await;
        }
    }
}
