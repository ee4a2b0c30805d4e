//! A client connection's share of `server.connections`.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::exchange::state::GatewayState;

/// The slot of a connection, released on drop. A `WebSocket` takes over the slot of its HTTP
/// connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    state: Arc<GatewayState>,
    stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlot {
    pub(crate) fn new(
        state: &Arc<GatewayState>,
        stop: watch::Receiver<bool>,
        permit: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        state.metrics.connections.inc();
        Arc::new(Self { state: Arc::clone(state), stop, _permit: permit })
    }

    /// Signals the stop of the gateway.
    pub(crate) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.state.metrics.connections.dec();
    }
}
