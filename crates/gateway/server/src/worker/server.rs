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

use crate::http::connection::serve_connection;
use crate::http::connection_slot::ConnectionSlot;
use crate::layers::admin::Serves;
use crate::layers::fault_injection;
use crate::routes::tools;
use crate::upstream::{HealthTarget, Upstream, run_health_checks};
use crate::worker::Worker;
use crate::worker::clock;

/// Pause before the next attempt to accept when the system has no descriptor left.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(10);

/// Time between two looks for idle connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Task polls before a worker looks at its sockets and timers again, even if tasks are ready. With
/// tokio's default of 61, a batch of requests is cut in the middle (docs/experiments.md).
const POLLS_PER_EVENT_CHECK: u32 = 128;

/// A single-threaded runtime.
///
/// # Errors
/// The system's, for lack of descriptors.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    // For names of upstreams, and for texts that are too large to be judged at once.
    Builder::new_current_thread()
        .enable_all()
        .event_interval(POLLS_PER_EVENT_CHECK)
        .max_blocking_threads(2)
        .build_local(LocalOptions::default())
}

/// Accepts connections until told to stop, then gives open ones time to finish. The first worker
/// also runs the health checks and looks at the tool servers.
pub(crate) async fn run(
    worker: Rc<Worker>,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    is_first: bool,
) {
    let config = worker.config();
    let connections = config.server.connections;
    if let Some(pause) = config.spec.faults.pause.filter(|_| worker.serves == Serves::Clients) {
        spawn_local(fault_injection::run_pauses(pause));
    }
    drop(config);
    if is_first {
        spawn_local(start_health_checks(Rc::clone(&worker)));
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

/// Gives back what a worker no longer needs, again and again.
#[expect(clippy::infinite_loop, reason = "the worker's runtime ends it")]
async fn sweep(worker: Rc<Worker>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        worker.pool.sweep(clock::now());
    }
}

/// Starts the health checks of the configuration in force, and of each later one. Those of an old
/// configuration end by themselves.
async fn start_health_checks(worker: Rc<Worker>) {
    let mut reloaded = worker.state.reloaded.subscribe();
    loop {
        worker.config().upstreams.iter().for_each(spawn_health_checks);
        if reloaded.changed().await.is_err() {
            return;
        }
    }
}

fn spawn_health_checks(upstream: &Arc<Upstream>) {
    let Some(spec) = &upstream.health else { return };
    for endpoint in &upstream.endpoints {
        let target = HealthTarget { endpoint: Arc::clone(endpoint), spec: spec.clone() };
        spawn_local(run_health_checks(target, Arc::downgrade(upstream)));
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
