//! Which core does what: client and gateway must not share one where there are two.

use plimsoll_runner::affinity::{allowed_cpus, pin_current_thread};

/// The cores of each part of a measurement. Without any, the kernel chooses.
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
    /// Assigns the cores that this process may use.
    pub fn assign() -> Self {
        Self::among(&allowed_cpus())
    }

    /// One core for the gateway, one for the provider if there are three, and the rest for the
    /// load.
    fn among(allowed: &[usize]) -> Self {
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

    /// Whether load and provider share a core.
    pub fn shared(&self) -> bool {
        self.provider.is_some_and(|core| self.generator.contains(&core))
    }

    /// The assignment as the report shows it.
    pub fn text(&self) -> String {
        match (self.gateway, self.provider) {
            (Some(gateway), Some(provider)) => format!(
                "gateway on core {gateway}, load on core {}, provider on core {provider}{}",
                self.generator.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                if self.shared() { " (shared with the load)" } else { "" }
            ),
            _ => "one core for all: load, gateway and provider take turns".to_owned(),
        }
    }
}

/// Restricts the calling thread, and everything that it starts, to some cores until dropped.
#[derive(Debug)]
pub(crate) struct Pinned {
    /// The cores that the thread had before; `None` if it was not pinned.
    before: Option<Vec<usize>>,
}

impl Pinned {
    /// Without `cores`, or if the system refuses, the thread keeps its current ones.
    pub(crate) fn to(cores: &[usize]) -> Self {
        let before = allowed_cpus();
        let is_pinned = !cores.is_empty() && pin_current_thread(cores).is_ok();
        Self { before: is_pinned.then_some(before) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If the system refuses, the thread stays where it is.
            let _ = pin_current_thread(before);
        }
    }
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
            let cores = Cores::among(&allowed);
            assert_eq!(cores, Cores { generator, gateway, provider }, "{allowed:?}");
            assert_eq!(cores.shared(), shared, "{allowed:?}");
        }
    }

    #[test]
    fn the_report_names_each_core() {
        for (allowed, text) in [
            (&[7][..], "one core for all: load, gateway and provider take turns"),
            (
                &[0, 1],
                "gateway on core 1, load on core 0, provider on core 0 (shared with the load)",
            ),
            (&[0, 1, 2, 3], "gateway on core 1, load on core 0, 3, provider on core 2"),
        ] {
            assert_eq!(Cores::among(allowed).text(), text);
        }
    }

    #[test]
    fn a_pinned_thread_gets_its_cores_back() {
        let before = allowed_cpus();
        let first = before[0];
        {
            let _pinned = Pinned::to(&[first]);
            assert_eq!(allowed_cpus(), [first]);
        }
        assert_eq!(allowed_cpus(), before);
        let _free = Pinned::to(&[]);
        assert_eq!(allowed_cpus(), before);
    }
}
