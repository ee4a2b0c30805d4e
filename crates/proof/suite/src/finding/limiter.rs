//! Who is saturated, by measured CPU time.

use crate::cell::Busy;
use crate::words::percent;

/// A core that is busy for more than this share of the time is saturated: the scheduler and the kernel's own
/// work take the rest.
const SATURATED: f64 = 0.9;

/// A load that waits for its core for more than this share of the time shares it with others.
const STOLEN: f64 = 0.1;

/// What holds the throughput back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limiter {
    /// The gateway's core.
    Gateway,
    /// The core of the load, with the provider on it where they share one: the throughput is a lower bound.
    Client,
    /// The provider's own core.
    Provider,
    /// Gateway and load alike.
    Both,
    /// None of the cores: something waits.
    Nobody,
    /// The gateway is not ours, and the load is not at its limit.
    Unknown,
}

/// Judges who is saturated.
pub(crate) fn limiter(busy: &Busy) -> Limiter {
    let provider = busy.provider.unwrap_or(0.0);
    let of_core = |generator: f64| if busy.shared { generator + provider } else { generator };
    let client = busy.generator.is_some_and(|generator| of_core(generator) >= SATURATED);
    let cores = busy.gateway_cores.unwrap_or(1.0);
    let gateway = busy.gateway.map(|gateway| gateway / cores >= SATURATED);
    match (gateway, client) {
        (Some(true), true) => Limiter::Both,
        (Some(true), false) => Limiter::Gateway,
        (_, true) => Limiter::Client,
        _ if !busy.shared && provider >= SATURATED => Limiter::Provider,
        (Some(false), false) => Limiter::Nobody,
        (None, false) => Limiter::Unknown,
    }
}

impl Limiter {
    /// The Bottleneck column.
    pub(crate) const fn word(self, shared: bool) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Client if shared => "client+provider core",
            Self::Client => "client",
            Self::Provider => "provider",
            Self::Both => "gateway and client",
            Self::Nobody => "no core is full",
            Self::Unknown => "not known",
        }
    }

    /// The sentence behind a finding.
    pub(crate) fn sentence(self, busy: &Busy) -> String {
        let gateway = percent(busy.gateway);
        let provider = busy.provider.filter(|&share| busy.shared && share > 0.01);
        let client = match provider {
            Some(share) => {
                let both = busy.generator.map(|generator| generator + share);
                format!("{} with the provider's part of {}", percent(both), percent(Some(share)))
            }
            None => percent(busy.generator),
        };
        let cores = format!("the gateway's core is {gateway} busy, the load's {client}");
        match self {
            Self::Gateway => format!("{cores}: the gateway is the limit"),
            Self::Client => format!(
                "{cores}: the load's core is the limit, and the throughput is a lower bound of the gateway's"
            ),
            Self::Provider => {
                format!("the provider's core is {} busy: it is the limit", percent(busy.provider))
            }
            Self::Both => format!(
                "{cores}: both are at their limit, and the throughput is a lower bound of the gateway's"
            ),
            Self::Nobody => match busy.waited.filter(|&waited| waited > STOLEN) {
                Some(waited) => format!(
                    "{cores}, but the load waited for its core {} of the time: other processes share this machine, and the figures are those of what they left",
                    percent(Some(waited))
                ),
                None => format!(
                    "{cores}, and none is full: something waits - a lock, a limit, the network or the provider"
                ),
            },
            Self::Unknown => format!(
                "the load's core is {} busy; the gateway's processor is not ours to see",
                percent(busy.generator)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_core_is_full_is_the_limit() {
        let of = |gateway, generator, provider, shared| Busy {
            gateway,
            generator,
            provider,
            waited: None,
            shared,
            gateway_cores: gateway.map(|_| 1.0),
        };
        for (busy, expected) in [
            (of(Some(0.99), Some(0.5), None, false), Limiter::Gateway),
            (of(Some(0.5), Some(0.97), None, false), Limiter::Client),
            // Half and half of one core.
            (of(Some(0.5), Some(0.5), Some(0.45), true), Limiter::Client),
            (of(Some(0.5), Some(0.5), Some(0.45), false), Limiter::Nobody),
            (of(Some(0.5), Some(0.5), Some(0.95), false), Limiter::Provider),
            (of(Some(0.95), Some(0.95), None, true), Limiter::Both),
            (of(Some(0.3), Some(0.3), Some(0.3), true), Limiter::Nobody),
            (of(None, Some(0.95), None, false), Limiter::Client),
            (of(None, Some(0.5), None, false), Limiter::Unknown),
        ] {
            assert_eq!(limiter(&busy), expected, "{busy:?}");
        }
        // Two cores for the gateway, of which it fills one.
        let two = Busy { gateway_cores: Some(2.0), ..of(Some(1.0), Some(0.2), None, false) };
        assert_eq!(limiter(&two), Limiter::Nobody);
    }
}
