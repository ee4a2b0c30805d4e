//! Which core does what: client and gateway must not share one where there are two.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Who runs where. Empty lists mean: wherever the kernel likes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// The load's.
    pub generator: Vec<usize>,
    /// The gateway's.
    pub gateway: Option<usize>,
    /// The provider's: on two cores it shares the generator's.
    pub provider: Option<usize>,
}

impl Cores {
    /// Deals the cores that this process may use.
    pub fn deal() -> Self {
        let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return Self::default() };
        let is_allowed = |&core: &usize| allowed.is_set(core).unwrap_or(false);
        Self::of(&(0..CpuSet::count()).filter(is_allowed).collect::<Vec<_>>())
    }

    /// One core for the gateway, one for the provider where there are three, and the rest for the load.
    fn of(allowed: &[usize]) -> Self {
        match *allowed {
            [] | [_] => Self::default(),
            [first, second] => {
                Self { generator: vec![first], gateway: Some(second), provider: Some(first) }
            }
            [first, second, third, ref rest @ ..] => {
                let generator = std::iter::once(first).chain(rest.iter().copied()).collect();
                Self { generator, gateway: Some(second), provider: Some(third) }
            }
        }
    }

    /// Do load and provider share a core?
    pub fn shared(&self) -> bool {
        self.provider.is_some_and(|core| self.generator.contains(&core))
    }

    /// For the report.
    pub fn words(&self) -> String {
        let list = |cores: &[usize]| {
            let cores: Vec<_> = cores.iter().map(ToString::to_string).collect();
            cores.join(", ")
        };
        match (self.gateway, self.provider) {
            (Some(gateway), Some(provider)) => format!(
                "gateway on core {gateway}, load on core {}, provider on core {provider}{}",
                list(&self.generator),
                if self.shared() { " (shared with the load)" } else { "" }
            ),
            _ => "one core for all: load, gateway and provider take turns".to_owned(),
        }
    }
}

/// Keeps the calling thread, and what it starts from now on, on some cores until dropped.
#[derive(Debug)]
pub(crate) struct Pinned(Option<CpuSet>);

impl Pinned {
    /// Where the system refuses, the thread stays as free as it was.
    pub(crate) fn to(cores: &[usize]) -> Self {
        let this = Pid::from_raw(0);
        let before = sched_getaffinity(this).ok().filter(|_| !cores.is_empty());
        Self(before.filter(|_| stay_on(cores).is_ok()))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A thread that cannot be freed again goes on where it is.
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}

/// Keeps the calling thread, and the threads and processes that it starts from now on, on some cores.
pub(crate) fn stay_on(cores: &[usize]) -> nix::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_never_shares_a_core_with_the_load() {
        for (allowed, generator, gateway, provider, shared) in [
            (vec![], vec![], None, None, false),
            (vec![3], vec![], None, None, false),
            (vec![0, 1], vec![0], Some(1), Some(0), true),
            (vec![2, 4, 6], vec![2], Some(4), Some(6), false),
            (vec![0, 1, 2, 3, 4], vec![0, 3, 4], Some(1), Some(2), false),
        ] {
            let cores = Cores::of(&allowed);
            assert_eq!(cores, Cores { generator, gateway, provider }, "{allowed:?}");
            assert_eq!(cores.shared(), shared, "{allowed:?}");
        }
    }
}
