//! How many workers a run has.

use std::num::NonZero;
use std::thread;

use plimsoll_plan::Plan;

/// Number of workers: the configured number, or one for each core that this process may use.
pub(crate) fn worker_count(plan: &Plan) -> u16 {
    plan.limits.workers.unwrap_or_else(cores).max(1)
}

/// Cores that this process may use.
pub(crate) fn cores() -> u16 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    u16::try_from(cores).unwrap_or(u16::MAX)
}
