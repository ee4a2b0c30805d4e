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
    /// Whether a connection is added for it.
    pub adds: Adds,
    /// Only a connection that has carried no request will do.
    pub unused: bool,
}

/// When a connection is added for a request that finds none free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// As far as the pool may grow now.
    Carefully,
    /// The same, but not while a free one will come soon: the generator itself released the request
    /// late, and that delay is not the target's.
    Late,
    /// At once: it is a virtual user's, of which there is a fixed number.
    AtOnce,
}

impl Demand {
    /// Any connection will do, and one is added carefully.
    pub const fn at(now: Moment) -> Self {
        Self { now, adds: Adds::Carefully, unused: false }
    }

    /// Whether the generator released it late and no connection is added for that.
    pub fn is_late(self) -> bool {
        self.adds == Adds::Late
    }
}
