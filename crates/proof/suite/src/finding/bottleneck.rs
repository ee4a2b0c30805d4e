//! The bottleneck, by measured CPU time.

use plimsoll_report::format::{digits, or_dash, percent};

use crate::result::{BusyShares, MeasurementResult};

/// A core with more than this share of CPU time is saturated: the scheduler and the kernel take the
/// rest.
const SATURATED: f64 = 0.9;

/// A load whose cores are busy for less than this share of the time could have sent more.
const HEADROOM: f64 = 0.8;

/// Throughput that rises by less than this share has stopped rising.
const FLAT: f64 = 0.05;

/// More load means at least this many times as many clients, or as high a rate.
const MORE: f64 = 1.2;

/// The part that limits the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// The gateway's core.
    Gateway,
    /// The load's core, including the provider if they share it: the throughput is a lower bound.
    Load,
    /// The provider's own core.
    Provider,
    /// The gateway's store, which used about a core.
    Store,
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
    let client = load(busy).is_some_and(|load| load >= SATURATED);
    let gateway = gateway_full(busy).map(|full| full >= SATURATED);
    match (gateway, client) {
        (Some(true), true) => Bottleneck::Both,
        (Some(true), false) => Bottleneck::Gateway,
        (_, true) => Bottleneck::Load,
        _ if !busy.shared && busy.provider_full.unwrap_or(provider) >= SATURATED => {
            Bottleneck::Provider
        }
        _ if busy.store.is_some_and(|store| store >= SATURATED) => Bottleneck::Store,
        (Some(false), false) => Bottleneck::NoCore,
        (None, false) => Bottleneck::Unknown,
    }
}

/// How full the gateway was: of its cores, or where it is the user's, of its busiest thread.
fn gateway_full(busy: &BusyShares) -> Option<f64> {
    let of_cores = busy.gateway.map(|gateway| gateway / busy.gateway_cores.unwrap_or(1.0));
    busy.gateway_full.or(of_cores)
}

/// Says of the load's cores, with the provider if it shares them, that they were saturated: a
/// request that waits there is late, and the gateway is not why.
pub(crate) fn full_load_core(busy: &BusyShares) -> Option<String> {
    let share = load(busy).filter(|share| *share >= SATURATED)?;
    let provider = provider_on_core(busy);
    let with = if provider > 0.0 {
        format!(", {} of it by the provider", percent(provider))
    } else {
        String::new()
    };
    Some(format!("the load's core was {} busy{with}: what waited there is in it", percent(share)))
}

/// CPU use of the load's cores, including the provider if they share one.
fn load(busy: &BusyShares) -> Option<f64> {
    Some(busy.generator? + provider_on_core(busy))
}

/// The cores that a gateway with several used, in words.
fn several_cores(busy: &BusyShares) -> Option<String> {
    let cores = busy.gateway_cores.filter(|cores| *cores > 1.0)?;
    Some(format!("{} of its {cores} cores", digits(busy.gateway?)))
}

fn provider_on_core(busy: &BusyShares) -> f64 {
    busy.provider.filter(|_| busy.shared).unwrap_or(0.0)
}

/// Whether the load could have sent more: all of its cores together, and its busiest worker.
fn has_headroom(busy: &BusyShares) -> bool {
    let busiest = busy.busiest_worker.map(|worker| worker + provider_on_core(busy));
    load(busy).is_some_and(|load| busiest.map_or(load, |busiest| busiest.max(load)) < HEADROOM)
}

/// What limited the throughput of the last of some results under rising load, in a sentence. `None`
/// if no limit was shown: then the throughput is what this load asked for, and says nothing about
/// the most that the target can carry.
pub(crate) fn limiter(levels: &[&MeasurementResult]) -> Option<String> {
    let (last, lower) = levels.split_last()?;
    let figures = last.figures().filter(|figures| figures.busy_host.is_none())?;
    // What a full gateway carries it carries, though the generator may have held some of it back.
    last.throughput()?;
    let busy = figures.busy;
    if let Bottleneck::Gateway | Bottleneck::Both = bottleneck(&busy) {
        let full = percent(gateway_full(&busy).unwrap_or(0.0));
        return Some(match several_cores(&busy) {
            None => format!("limited by the gateway's own CPU, which was {full} busy"),
            Some(used) => format!(
                "limited by the gateway's own CPU: it used {used}, and they or its busiest thread were {full} busy"
            ),
        });
    }
    if figures.limited || !has_headroom(&busy) {
        return None;
    }
    let rate = last.figure(|f| f.requests_per_s).ok()?;
    let load = or_dash(load(&busy), percent);
    if let Some(planned) = last.rate.filter(|planned| rate < planned * (1.0 - FLAT)) {
        return Some(format!(
            "throughput stopped rising: of {}/s planned it completed {}/s, while the load's cores were {load} busy",
            digits(planned),
            digits(rate)
        ));
    }
    let clients = f64::from(last.clients?);
    let before = lower
        .iter()
        .rev()
        .find(|result| result.clients.is_some_and(|fewer| f64::from(fewer) * MORE <= clients))?;
    let less = before.figure(|f| f.requests_per_s).ok()?;
    (rate < less * (1.0 + FLAT)).then(|| {
        format!(
            "throughput stopped rising: {}/s with {} clients and {}/s with {clients}, while the load's cores were {load} busy",
            digits(less),
            before.clients.unwrap_or_default(),
            digits(rate)
        )
    })
}

impl Bottleneck {
    /// The Bottleneck column.
    pub(crate) const fn word(self, shared: bool) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Load if shared => "client+provider core",
            Self::Load => "client",
            Self::Provider => "provider",
            Self::Store => "store",
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
        let cores = match several_cores(busy) {
            None => format!("the gateway's core is {gateway} busy, the load's {client}"),
            Some(used) => format!(
                "the gateway used {used} and is {} full, by them or by its busiest thread; the load's cores are {client} busy",
                or_dash(gateway_full(busy), percent)
            ),
        };
        match self {
            Self::Gateway => format!("{cores}: the gateway is the bottleneck"),
            Self::Load => format!(
                "{cores}: the load's core is the bottleneck, and the throughput is a lower bound of the gateway's"
            ),
            Self::Provider => {
                format!(
                    "the provider is {} busy: it is the bottleneck",
                    or_dash(busy.provider_full.or(busy.provider), percent)
                )
            }
            Self::Store => format!(
                "the store used {} of a core: if it works in one thread, as Redis does, it is the bottleneck",
                or_dash(busy.store, percent)
            ),
            Self::Both => format!(
                "{cores}: both are at their limit, and the throughput is a lower bound of the gateway's"
            ),
            Self::NoCore => format!(
                "{cores}, and none is saturated: clients wait for answers, by the latency of the path, a lock or a limit"
            ),
            Self::Unknown => format!(
                "the load's core is {} busy; the gateway's CPU use is not known",
                or_dash(busy.generator, percent)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{figures, result};
    use super::*;

    #[test]
    fn the_saturated_core_is_the_bottleneck() {
        let of = |gateway, generator, provider, shared| BusyShares {
            gateway,
            generator,
            busiest_worker: generator,
            provider,
            store: None,
            waited: None,
            shared,
            gateway_cores: gateway.map(|_| 1.0),
            ..BusyShares::default()
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
        let store = BusyShares { store: Some(0.97), ..of(Some(0.4), Some(0.3), None, false) };
        assert_eq!(bottleneck(&store), Bottleneck::Store);
        assert!(Bottleneck::Store.sentence(&store).starts_with("the store used 97.0% of a core"));
        let both = BusyShares { store: Some(0.97), ..of(Some(0.95), Some(0.3), None, false) };
        assert_eq!(bottleneck(&both), Bottleneck::Gateway);
        // Two cores for the gateway, of which it fills one.
        let two = BusyShares { gateway_cores: Some(2.0), ..of(Some(1.0), Some(0.2), None, false) };
        assert_eq!(bottleneck(&two), Bottleneck::NoCore);
    }

    /// A gateway of the user's on eight cores: 1.5 of them are no limit, a full thread is one.
    #[test]
    fn a_gateway_of_several_cores_is_full_by_them_or_by_a_thread() {
        let of = |used, full| BusyShares {
            gateway: Some(used),
            gateway_cores: Some(8.0),
            gateway_full: Some(full),
            generator: Some(0.3),
            ..BusyShares::default()
        };
        for (busy, expected) in [
            (of(1.5, 0.5), Bottleneck::NoCore),
            (of(1.5, 0.99), Bottleneck::Gateway),
            (of(7.8, 0.975), Bottleneck::Gateway),
        ] {
            assert_eq!(bottleneck(&busy), expected, "{busy:?}");
        }
        let busy = of(1.5, 0.5);
        let text = "the gateway used 1.50 of its 8 cores and is 50.0% full, by them or by its busiest thread; the load's cores are 30.0% busy";
        assert!(Bottleneck::NoCore.sentence(&busy).starts_with(text));
        let upstream = BusyShares { provider: Some(1.5), provider_full: Some(0.4), ..busy };
        assert_eq!(bottleneck(&upstream), Bottleneck::NoCore, "it has cores left");
        let mut full = result("x", 8, figures(500.0, 1.0));
        full.passes[0].busy = of(7.8, 0.975);
        let text = limiter(&[&full]).unwrap();
        assert!(text.starts_with("limited by the gateway's own CPU: it used 7.80 of"), "{text}");
    }

    #[test]
    fn sentences_name_the_shares_that_they_rest_on() {
        let busy = BusyShares {
            gateway: Some(0.5),
            generator: Some(0.25),
            busiest_worker: None,
            provider: Some(0.125),
            store: None,
            waited: None,
            shared: true,
            gateway_cores: Some(1.0),
            ..BusyShares::default()
        };
        let both =
            "the gateway's core is 50.0% busy, the load's 37.5% with the provider's part of 12.5%";
        assert!(Bottleneck::Gateway.sentence(&busy).starts_with(both));
        assert!(Bottleneck::NoCore.sentence(&busy).contains("none is saturated"));
        let alone = BusyShares { shared: false, gateway: None, ..busy };
        let unknown = "the load's core is 25.0% busy; the gateway's CPU use is not known";
        assert_eq!(Bottleneck::Unknown.sentence(&alone), unknown);
        assert_eq!(Bottleneck::Load.word(true), "client+provider core");
    }

    #[test]
    fn a_limit_is_a_full_core_or_throughput_that_stopped_rising() {
        let at = |clients, rate, gateway, generator| {
            let busy = BusyShares { gateway, generator, ..BusyShares::default() };
            let mut result = result("x", clients, figures(rate, 1.0));
            result.passes[0].busy = busy;
            result
        };
        for (few, many, shown) in [
            (
                (100, 9_000.0),
                (200, 15_000.0, Some(0.95), Some(0.5)),
                Some("own CPU, which was 95.0%"),
            ),
            (
                (100, 9_000.0),
                (200, 9_100.0, None, Some(0.4)),
                Some("stopped rising: 9,000/s with 100"),
            ),
            // The clients set the rate: six clients and 100 ms are 60 a second.
            ((100, 9_000.0), (200, 18_000.0, Some(0.2), Some(0.4)), None),
            // The load has no core left: it may be its own limit.
            ((100, 9_000.0), (200, 9_100.0, None, Some(0.95)), None),
            ((100, 9_000.0), (200, 9_100.0, None, None), None),
            // Hardly more load shows nothing.
            ((190, 9_000.0), (200, 9_100.0, None, Some(0.4)), None),
        ] {
            let few = at(few.0, few.1, Some(0.2), Some(0.2));
            let many = at(many.0, many.1, many.2, many.3);
            let found = limiter_of_two(&few, &many);
            let fits = match shown {
                None => found.is_none(),
                Some(part) => found.as_ref().is_some_and(|text| text.contains(part)),
            };
            assert!(fits, "{shown:?}: {found:?}");
        }
        let flat = at(100, 9_000.0, None, Some(0.4));
        let mut more = at(200, 9_000.0, None, Some(0.4));
        assert!(limiter_of_two(&flat, &more).is_some());
        more.passes[0].busy_host = Some("steal".to_owned());
        assert_eq!(limiter_of_two(&flat, &more), None, "the host was busy");
        more.passes[0].busy_host = None;
        more.passes[0].busy.busiest_worker = Some(0.95);
        assert_eq!(limiter_of_two(&flat, &more), None, "one worker of the load was full");
        more.passes[0].busy.busiest_worker = Some(0.5);
        more.passes[0].errors = 5_000;
        assert_eq!(limiter_of_two(&flat, &more), None, "refusals are no throughput");
        let mut open = at(1, 800.0, None, Some(0.1));
        (open.clients, open.rate) = (None, Some(1_000.0));
        assert!(limiter(&[&open]).unwrap().contains("of 1,000/s planned it completed 800/s"));
        open.rate = Some(810.0);
        assert_eq!(limiter(&[&open]), None);
    }

    fn limiter_of_two(few: &MeasurementResult, many: &MeasurementResult) -> Option<String> {
        limiter(&[few, many])
    }
}
