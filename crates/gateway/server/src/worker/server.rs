//! The accept loop of one worker thread, and the worker's background tasks.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::base::clock;
use crate::exchange::connection_slot::ConnectionSlot;
use crate::exchange::worker::Worker;
use crate::routes::tools;
use crate::worker::connection::serve_connection;

/// Pause before the next accept if the system has no descriptor left.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(10);

/// Time between two sweeps of idle connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Task polls before a worker polls its sockets and timers again, even if tasks are ready. tokio's
/// default of 61 splits a batch of requests (docs/experiments.md).
const POLLS_PER_EVENT_CHECK: u32 = 128;

/// A single-threaded runtime.
///
/// # Errors
/// The system has no descriptors left.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    // For name resolution of upstreams, and for texts that are too large to judge on the worker.
    Builder::new_current_thread()
        .enable_all()
        .event_interval(POLLS_PER_EVENT_CHECK)
        .max_blocking_threads(2)
        .build_local(LocalOptions::default())
}

/// Accepts connections until the stop signal, then gives open ones time to finish. The first worker
/// also refreshes the tool servers.
pub(crate) async fn run(
    worker: Rc<Worker>,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    is_first: bool,
) {
    let connections = worker.config().server.connections;
    if is_first {
        spawn_local(tools::refresh(Rc::clone(&worker)));
    }
    spawn_local(sweep(Rc::clone(&worker)));
    spawn_local(Rc::clone(&worker.fair_queue).run());
    let permits = Arc::new(Semaphore::new(connections));
    let accepting = accept(Rc::clone(&worker), listener, Arc::clone(&permits), stop.clone());
    tokio::select! {
        () = accepting => {}
        _ = stop.wait_for(|stopped| *stopped) => {}
    }
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let _ = timeout(worker.config().server.drain.0, permits.acquire_many(all)).await;
}

/// Frees unused resources of a worker periodically.
#[expect(clippy::infinite_loop, reason = "the worker's runtime ends it")]
async fn sweep(worker: Rc<Worker>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        worker.pool.sweep(clock::now());
    }
}

async fn accept(
    worker: Rc<Worker>,
    listener: TcpListener,
    permits: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
) {
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_BACKOFF).await;
            continue;
        };
        let worker = Rc::clone(&worker);
        let slot = ConnectionSlot::new(&worker.state, stop.clone(), permit);
        spawn_local(async move { serve_connection(&worker, stream, peer, slot).await });
    }
}
