//! The state of one worker thread. Connections stay on the worker that accepted them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};
use plimsoll_gateway_store::Store;

use crate::assembly::config::Config;
use crate::base::rng::splitmix64;
use crate::exchange::state::GatewayState;
use crate::layers::admin::ListenerRole;
use crate::layers::fault_injection::FaultInjector;
use crate::layers::metrics::{Metrics, SeriesCache};
use crate::layers::tool_server::ToolConnections;
use crate::upstream::Pool;
use crate::upstream::fair_queue::FairQueue;

/// The state that the tasks of one worker share.
pub(crate) struct Worker {
    pub(crate) role: ListenerRole,
    pub(crate) state: Arc<GatewayState>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) fair_queue: Rc<FairQueue>,
    pub(crate) series: SeriesCache,
    pub(crate) store: Store,
    pub(crate) faults: FaultInjector,
    /// The protocol negotiated with each tool server.
    pub(crate) tools: ToolConnections,
    requests: Cell<u64>,
    config: RefCell<Cache<Arc<ArcSwap<Config>>, Arc<Config>>>,
}

impl Worker {
    pub(crate) async fn new(state: Arc<GatewayState>, role: ListenerRole) -> Self {
        let config = RefCell::new(Cache::new(Arc::clone(&state.config)));
        let store = state.backend.attach().await;
        Self {
            role,
            state,
            pool: Rc::default(),
            fair_queue: Rc::default(),
            series: SeriesCache::default(),
            store,
            faults: FaultInjector::default(),
            tools: ToolConnections::default(),
            requests: Cell::new(0),
            config,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.state.metrics
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(self.config.borrow_mut().load())
    }

    /// A unique number of a request of this gateway.
    pub(crate) fn next_request_number(&self) -> u64 {
        self.requests.set(self.requests.get().wrapping_add(1));
        splitmix64(
            self.state.salt
                ^ (std::ptr::from_ref(self).addr() as u64)
                ^ (self.requests.get() << 20),
        )
    }
}
