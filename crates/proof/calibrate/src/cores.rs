//! Which core does what: the generator and the reference server must not share one.

use plimsoll_runner::affinity::{allowed_cpus, pin_current_thread};

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
        Self::first_two(&allowed_cpus())
    }

    fn first_two(allowed: &[usize]) -> Option<Self> {
        let [generator, server] = *allowed.first_chunk()?;
        Some(Self { generator, server })
    }
}

/// Restricts the calling thread, and everything that it starts from now on, to one core.
pub(crate) fn stay_on(core: usize) -> Result<(), CalibrateError> {
    pin_current_thread(&[core]).map_err(CalibrateError::errno("cannot stay on one core"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_and_server_have_a_core_each_or_none_is_assigned() {
        for (allowed, cores) in [
            (&[][..], None),
            (&[3], None),
            (&[3, 5], Some(Cores { generator: 3, server: 5 })),
            (&[0, 1, 2], Some(Cores { generator: 0, server: 1 })),
        ] {
            assert_eq!(Cores::first_two(allowed), cores, "{allowed:?}");
        }
    }
}
