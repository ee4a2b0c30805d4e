//! The connections of a virtual user or a worker, by target.

use plimsoll_measure::TargetId;

use crate::transport::Pool;

/// One pool of connections per target: those of one virtual user, or those that a worker's
/// conversations share.
#[derive(Debug)]
pub(crate) struct ConnectionSet(Vec<Pool>);

impl ConnectionSet {
    /// Empty pools for so many targets.
    pub(crate) fn new(targets: usize) -> Self {
        Self((0..targets).map(|_| Pool::new()).collect())
    }

    /// The connections to one target.
    pub(crate) fn pool(&self, target: TargetId) -> &Pool {
        &self.0[target.index()]
    }
}
