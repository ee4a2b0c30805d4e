//! The connections of a virtual user or a worker, by target.

use std::rc::Rc;

use plimsoll_measure::{Stripe, TargetId};
use plimsoll_profile::{HttpPlan, HttpVersion};
use plimsoll_transport::{Connector, PoolLimits, RxClock};

use crate::clock::WorkerClock;
use crate::transport::{Pool, TargetOpener};

/// One pool of connections per target: those of one virtual user, or those that a worker's
/// conversations share.
#[derive(Debug)]
pub(crate) struct ConnectionSet(Vec<Pool>);

impl ConnectionSet {
    /// Empty pools for the targets of these connectors.
    pub(crate) fn new(
        connectors: &[Rc<Connector>],
        rx_clock: &Rc<RxClock<WorkerClock>>,
        limits: PoolLimits,
    ) -> Self {
        let pool = |connector| Pool::new(TargetOpener::new(connector, rx_clock), limits);
        Self(connectors.iter().map(pool).collect())
    }

    /// The connections to one target.
    pub(crate) fn pool(&self, target: TargetId) -> &Pool {
        &self.0[target.index()]
    }

    /// Every pool, in the order of the targets.
    pub(crate) fn pools(&self) -> &[Pool] {
        &self.0
    }
}

/// The bounds of one virtual user's connections.
pub(crate) fn limits_of_user(http: &HttpPlan) -> PoolLimits {
    let limits = PoolLimits::default();
    match http.version {
        HttpVersion::Http1 => PoolLimits { idle_limit: http.idle_limit, ..limits },
        // Slots cost nothing while they are idle; the target says when it closes the connection.
        HttpVersion::Http2 => limits,
    }
}

/// The bounds of the connections that a worker with this part of the load shares.
pub(crate) fn limits_of_worker(http: &HttpPlan, stripe: Stripe) -> PoolLimits {
    let limits = limits_of_user(http);
    let share = |total| usize::try_from(stripe.share(total)).unwrap_or(usize::MAX);
    PoolLimits {
        max_connections: http.max_connections.map_or(limits.max_connections, share),
        ..limits
    }
}
