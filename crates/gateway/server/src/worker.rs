//! One thread with one event loop: connections stay on the worker that accepted them.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_gateway_store::Store;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::books::Pen;
use crate::config::Config;
use crate::connection;
use crate::fault::{self, Faults};
use crate::llm::Memo;
use crate::meters::Series;
use crate::shared::Shared;
use crate::upstream::{self, Pool, Upstream};

/// How long the acceptor rests when the system has no descriptor left.
const ACCEPT_REST: std::time::Duration = std::time::Duration::from_millis(10);

/// What the tasks of one worker share.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    pool: Pool,
    series: Series,
    memo: Memo,
    store: Store,
    pen: Pen,
    pub(crate) faults: Faults,
    made: Cell<u64>,
    /// The configuration that this worker saw last, and its number.
    seen: RefCell<arc_swap::Cache<Arc<arc_swap::ArcSwap<Config>>, Arc<Config>>>,
}

/// A single-threaded runtime.
///
/// # Errors
/// The system's, for want of descriptors.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

impl Worker {
    pub(crate) async fn new(shared: Arc<Shared>) -> Self {
        let seen = RefCell::new(arc_swap::Cache::new(Arc::clone(&shared.config)));
        let (store, pen) = (shared.backend.attach().await, shared.books.pen());
        Self {
            shared,
            pool: Pool::default(),
            series: Series::default(),
            memo: Memo::default(),
            store,
            pen,
            faults: Faults::default(),
            made: Cell::new(0),
            seen,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) const fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) const fn series(&self) -> &Series {
        &self.series
    }

    pub(crate) const fn memo(&self) -> &Memo {
        &self.memo
    }

    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) const fn pen(&self) -> &Pen {
        &self.pen
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(self.seen.borrow_mut().load())
    }

    /// A number that no other request of this gateway has.
    pub(crate) fn number(&self) -> u64 {
        self.made.set(self.made.get().wrapping_add(1));
        fault::scramble(
            self.shared.salt ^ (std::ptr::from_ref(self).addr() as u64) ^ (self.made.get() << 20),
        )
    }

    /// Accepts connections until told to stop, then gives those that are open time to end.
    pub(crate) async fn run(
        self: Rc<Self>,
        listener: TcpListener,
        mut stop: watch::Receiver<bool>,
        first: bool,
    ) {
        let server = self.config().server;
        if let Some(pause) = self.config().faults.pause {
            spawn_local(fault::pause(pause));
        }
        if first {
            spawn_local(Rc::clone(&self).check_upstreams());
        }
        let room = Arc::new(Semaphore::new(server.connections));
        let accepting = {
            let (stop, room) = (stop.clone(), Arc::clone(&room));
            accept(Rc::clone(&self), listener, room, stop)
        };
        tokio::select! {
            () = accepting => {}
            _ = stop.wait_for(|stopped| *stopped) => {}
        }
        let all = u32::try_from(server.connections).unwrap_or(u32::MAX);
        let _ = timeout(server.drain.0, room.acquire_many(all)).await;
    }

    /// Starts the checks of the configuration in force, and of each one after it. Those of an old configuration end by
    /// themselves.
    async fn check_upstreams(self: Rc<Self>) {
        let mut reloaded = self.shared.reloaded.subscribe();
        loop {
            self.config().upstreams.iter().for_each(check);
            if reloaded.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Starts the checks of an upstream, if it has any.
fn check(upstream: &Arc<Upstream>) {
    let count = upstream.health.as_ref().map_or(0, |_| upstream.endpoints.len());
    for number in 0..count {
        spawn_local(upstream::watch(Arc::clone(upstream), number));
    }
}

async fn accept(
    worker: Rc<Worker>,
    listener: TcpListener,
    room: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
) {
    loop {
        // It is never closed.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_REST).await;
            continue;
        };
        let (worker, stop) = (Rc::clone(&worker), stop.clone());
        spawn_local(async move {
            worker.shared.meters.connected();
            connection::attend(&worker, stream, peer, stop).await;
            worker.shared.meters.disconnected();
            drop(place);
        });
    }
}
