//! What came of the wait for a common start.

use plimsoll_measure::Nanos;
use plimsoll_run_files::ShardStart;

/// What came of the wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waited {
    /// It goes on.
    #[default]
    Waits,
    /// The run began at this start.
    Began(ShardStart),
    /// It was ready so long after the start.
    Late(ShardStart, Nanos),
    /// The start lies further ahead than the longest wait.
    TooFar(Nanos),
    /// These shards were not ready in time, as far as this one can see.
    NotReady(Vec<u64>),
    /// The sign of the start cannot be written or read.
    Broken(String),
    /// The user ended the wait.
    Interrupted,
}
