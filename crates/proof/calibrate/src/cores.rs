//! Which core does what: the generator and the reference server must not share one.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::error::CalibrateError;

/// One core for the generator and one for the reference server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) generator: usize,
    pub(crate) server: usize,
}

impl Cores {
    /// The first two cores that this process may use; `None` where there is only one.
    pub(crate) fn choose() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let mut cores = (0..CpuSet::count()).filter(|&core| allowed.is_set(core).unwrap_or(false));
        Some(Self { generator: cores.next()?, server: cores.next()? })
    }
}

/// Keeps the calling thread, and the threads and processes that it starts from now on, on one core.
///
/// # Errors
/// Where the system refuses.
pub(crate) fn stay_on(core: usize) -> Result<(), CalibrateError> {
    let mut set = CpuSet::new();
    set.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(CalibrateError::errno("cannot stay on one core"))
}
