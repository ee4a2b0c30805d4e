//! The place of a client's connection among `server.connections`.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::exchange::state::GatewayState;

/// The place of a connection, taken until it is dropped. A `WebSocket` takes it over from the
/// HTTP connection that it was.
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
        state.metrics.connection_opened();
        Arc::new(Self { state: Arc::clone(state), stop, _permit: permit })
    }

    /// Tells when the gateway stops.
    pub(crate) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.state.metrics.connection_closed();
    }
}
