//! Idle connections.

use crate::connection::Connection;

/// Idle connections to one target, most recently used first: the ones that stay idle grow old
/// together and can be closed by the target without harm.
#[derive(Debug, Default)]
pub struct Pool {
    idle: Vec<Connection>,
}

impl Pool {
    /// An empty pool.
    pub const fn new() -> Self {
        Self { idle: Vec::new() }
    }

    /// A connection that is still open and silent, if there is one. Others are dropped on the way.
    pub fn take(&mut self) -> Option<Connection> {
        while let Some(mut connection) = self.idle.pop() {
            if connection.is_idle() {
                return Some(connection);
            }
        }
        None
    }

    /// Puts a connection back that may carry another request.
    pub fn give(&mut self, connection: Connection) {
        self.idle.push(connection);
    }
}
