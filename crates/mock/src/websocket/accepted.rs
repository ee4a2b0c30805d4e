//! What the turns of a WebSocket have of its handshake.

use crate::overrides::RequestOverrides;

/// A handshake that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Its `x-request-id`.
    pub(crate) request_id: Option<String>,
    /// Values that replace those of the model, in every turn.
    pub(crate) overrides: RequestOverrides,
}
