//! The bottleneck, by measured CPU time.

use plimsoll_report::format::{or_dash, percent};

use crate::result::BusyShares;

/// A core with more than this share of CPU time is saturated: the scheduler and the kernel take the
/// rest.
const SATURATED: f64 = 0.9;

/// A load that waits for its core for more than this share of the time shares it with other
/// processes.
const STOLEN: f64 = 0.1;

/// The part that limits the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// The gateway's core.
    Gateway,
    /// The load's core, including the provider if they share it: the throughput is a lower bound.
    Load,
    /// The provider's own core.
    Provider,
    /// Both the gateway's and the load's core.
    Both,
    /// None of the cores: something waits.
    NoCore,
    /// The CPU time of the gateway is not known, and the load is not at its limit.
    Unknown,
}

/// Finds the bottleneck.
pub(crate) fn bottleneck(busy: &BusyShares) -> Bottleneck {
    let provider = busy.provider.unwrap_or(0.0);
    let on_core = |generator: f64| if busy.shared { generator + provider } else { generator };
    let client = busy.generator.is_some_and(|generator| on_core(generator) >= SATURATED);
    let cores = busy.gateway_cores.unwrap_or(1.0);
    let gateway = busy.gateway.map(|gateway| gateway / cores >= SATURATED);
    match (gateway, client) {
        (Some(true), true) => Bottleneck::Both,
        (Some(true), false) => Bottleneck::Gateway,
        (_, true) => Bottleneck::Load,
        _ if !busy.shared && provider >= SATURATED => Bottleneck::Provider,
        (Some(false), false) => Bottleneck::NoCore,
        (None, false) => Bottleneck::Unknown,
    }
}

impl Bottleneck {
    /// The Bottleneck column.
    pub(crate) const fn word(self, shared: bool) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Load if shared => "client+provider core",
            Self::Load => "client",
            Self::Provider => "provider",
            Self::Both => "gateway and client",
            Self::NoCore => "no core",
            Self::Unknown => "not known",
        }
    }

    /// The explanation in a finding.
    pub(crate) fn sentence(self, busy: &BusyShares) -> String {
        let gateway = or_dash(busy.gateway, percent);
        let provider = busy.provider.filter(|&share| busy.shared && share > 0.01);
        let client = match provider {
            Some(share) => {
                let both = busy.generator.map(|generator| generator + share);
                format!("{} with the provider's part of {}", or_dash(both, percent), percent(share))
            }
            None => or_dash(busy.generator, percent),
        };
        let cores = format!("the gateway's core is {gateway} busy, the load's {client}");
        match self {
            Self::Gateway => format!("{cores}: the gateway is the bottleneck"),
            Self::Load => format!(
                "{cores}: the load's core is the bottleneck, and the throughput is a lower bound of the gateway's"
            ),
            Self::Provider => {
                format!(
                    "the provider's core is {} busy: it is the bottleneck",
                    or_dash(busy.provider, percent)
                )
            }
            Self::Both => format!(
                "{cores}: both are at their limit, and the throughput is a lower bound of the gateway's"
            ),
            Self::NoCore => match busy.waited.filter(|&waited| waited > STOLEN) {
                Some(waited) => format!(
                    "{cores}, but the load waited for its core {} of the time: other processes use this machine and lower the figures",
                    percent(waited)
                ),
                None => format!(
                    "{cores}, and none is saturated: something waits for a lock, a limit, the network or the provider"
                ),
            },
            Self::Unknown => format!(
                "the load's core is {} busy; the gateway's CPU use is not known",
                or_dash(busy.generator, percent)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_saturated_core_is_the_bottleneck() {
        let of = |gateway, generator, provider, shared| BusyShares {
            gateway,
            generator,
            provider,
            waited: None,
            shared,
            gateway_cores: gateway.map(|_| 1.0),
        };
        for (busy, expected) in [
            (of(Some(0.99), Some(0.5), None, false), Bottleneck::Gateway),
            (of(Some(0.5), Some(0.97), None, false), Bottleneck::Load),
            // Half and half of one core.
            (of(Some(0.5), Some(0.5), Some(0.45), true), Bottleneck::Load),
            (of(Some(0.5), Some(0.5), Some(0.45), false), Bottleneck::NoCore),
            (of(Some(0.5), Some(0.5), Some(0.95), false), Bottleneck::Provider),
            (of(Some(0.95), Some(0.95), None, true), Bottleneck::Both),
            (of(Some(0.3), Some(0.3), Some(0.3), true), Bottleneck::NoCore),
            (of(None, Some(0.95), None, false), Bottleneck::Load),
            (of(None, Some(0.5), None, false), Bottleneck::Unknown),
        ] {
            assert_eq!(bottleneck(&busy), expected, "{busy:?}");
        }
        // Two cores for the gateway, of which it fills one.
        let two = BusyShares { gateway_cores: Some(2.0), ..of(Some(1.0), Some(0.2), None, false) };
        assert_eq!(bottleneck(&two), Bottleneck::NoCore);
    }

    #[test]
    fn sentences_name_the_shares_that_they_rest_on() {
        let busy = BusyShares {
            gateway: Some(0.5),
            generator: Some(0.25),
            provider: Some(0.125),
            waited: None,
            shared: true,
            gateway_cores: Some(1.0),
        };
        let both =
            "the gateway's core is 50.0% busy, the load's 37.5% with the provider's part of 12.5%";
        assert!(Bottleneck::Gateway.sentence(&busy).starts_with(both));
        assert!(Bottleneck::NoCore.sentence(&busy).contains("something waits for a lock"));
        // A load that waits for its core shares it with others.
        let waited = BusyShares { waited: Some(0.2), ..busy };
        assert!(Bottleneck::NoCore.sentence(&waited).contains("waited for its core 20.0% of"));
        let alone = BusyShares { shared: false, gateway: None, ..busy };
        let unknown = "the load's core is 25.0% busy; the gateway's CPU use is not known";
        assert_eq!(Bottleneck::Unknown.sentence(&alone), unknown);
        assert_eq!(Bottleneck::Load.word(true), "client+provider core");
    }
}
