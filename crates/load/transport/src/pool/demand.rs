//! A need for a connection, and the bounds within which it is met.

use plimsoll_measure::{Moment, Nanos};

/// Bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Most connections, those that are being opened included; at least 1.
    pub max_connections: usize,
    /// A connection that has been idle for longer is not used again. HTTP/1.1 only.
    pub idle_limit: Nanos,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { max_connections: usize::MAX, idle_limit: Nanos::new(u64::MAX) }
    }
}

/// A need for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Since when.
    pub now: Moment,
    /// The generator itself released the request late. No connection is added for it while a free
    /// one will come soon: its delay is not the target's.
    pub late: bool,
    /// Only a connection that has carried no request will do.
    pub unused: bool,
}

impl Demand {
    /// Any connection will do.
    pub const fn at(now: Moment) -> Self {
        Self { now, late: false, unused: false }
    }
}
