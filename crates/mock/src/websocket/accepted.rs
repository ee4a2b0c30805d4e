//! The data that the turns of a WebSocket take from its handshake.

use crate::overrides::RequestOverrides;

/// An accepted handshake.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Its `x-request-id`.
    pub(crate) request_id: Option<String>,
    /// Values that override the model's in every turn.
    pub(crate) overrides: RequestOverrides,
}
