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

impl BusyShares {
    /// CPU use of the load's cores, including the provider if they share one.
    pub(crate) fn load_core(&self) -> Option<f64> {
        Some(self.generator? + self.provider_on_core())
    }

    fn provider_on_core(&self) -> f64 {
        self.provider.filter(|_| self.shared).unwrap_or(0.0)
    }

    /// How full the gateway was: of its cores, or where it is the user's, of its busiest thread.
    pub(crate) fn gateway_full(&self) -> Option<f64> {
        let of_cores = self.gateway.map(|gateway| gateway / self.gateway_cores.unwrap_or(1.0));
        self.gateway_full.or(of_cores)
    }

    /// Everything that may be the limit, and how full it was.
    fn parts(&self) -> [(&'static str, Option<f64>); 4] {
        let provider = self.provider_full.or(self.provider).filter(|_| !self.shared);
        [
            ("gateway", self.gateway_full()),
            (if self.shared { SHARED_CORE } else { "client" }, self.load_core()),
            ("provider", provider),
            ("store", self.store),
        ]
    }

    fn full_parts(&self) -> Vec<&'static str> {
        let parts = self.parts().into_iter();
        parts.filter_map(|(name, share)| (share? >= SATURATED).then_some(name)).collect()
    }

    /// Whether the core of the gateway or of the load was saturated.
    pub(crate) fn is_saturated(&self) -> bool {
        [self.gateway_full(), self.load_core()].iter().flatten().any(|share| *share >= SATURATED)
    }

    /// Whether the load could have sent more: all of its cores together, and its busiest worker.
    fn has_headroom(&self) -> bool {
        let busiest = self.busiest_worker.map(|worker| worker + self.provider_on_core());
        self.load_core().is_some_and(|load| busiest.unwrap_or(load).max(load) < HEADROOM)
    }

    /// The Bottleneck column.
    pub(crate) fn bottleneck(&self) -> String {
        match &*self.full_parts() {
            [] if self.gateway_full().is_none() => "not known".to_owned(),
            [] => "no core".to_owned(),
            full => full.join(" and "),
        }
    }

    /// The bottleneck in a sentence, with the shares that it rests on.
    pub(crate) fn sentence(&self) -> String {
        let known = self.parts().into_iter();
        let known = known.filter_map(|(name, share)| Some(format!("{name} {}", percent(share?))));
        let full = self.full_parts();
        let so = match &*full {
            [] if self.gateway_full().is_none() => "the gateway's is not known".to_owned(),
            [] => "none is saturated, so clients wait for the path, a lock or a limit".to_owned(),
            ["store"] => "the store is the bottleneck, if it works in one thread".to_owned(),
            [one] => format!("the {one} is the bottleneck"),
            several => format!("{} are saturated", several.join(" and ")),
        };
        let is_load = full.iter().any(|name| ["client", SHARED_CORE].contains(name));
        let least = if is_load { "; the throughput is a lower bound of the gateway's" } else { "" };
        format!("CPU use {}: {so}{least}", known.collect::<Vec<_>>().join(", "))
    }
}

/// The load's core where the provider shares it.
const SHARED_CORE: &str = "client+provider core";

/// Says of the load's cores, with the provider if it shares them, that they were saturated: a
/// request that waits there is late, and the gateway is not why.
pub(crate) fn full_load_core(busy: &BusyShares) -> Option<String> {
    let share = busy.load_core().filter(|share| *share >= SATURATED)?;
    Some(format!("the load's core was {} busy: what waited there is in it", percent(share)))
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
    if let Some(full) = busy.gateway_full().filter(|full| *full >= SATURATED) {
        return Some(format!("limited by the gateway's own CPU, which was {} busy", percent(full)));
    }
    if figures.limited || !busy.has_headroom() {
        return None;
    }
    let rates = flat_rates(last, lower)?.join(" and ");
    let load = or_dash(busy.load_core(), percent);
    Some(format!("throughput stopped rising: {rates}, while the load's cores were {load} busy"))
}

/// What was planned, or came with fewer clients, and the rate that is no higher for it.
fn flat_rates(last: &MeasurementResult, lower: &[&MeasurementResult]) -> Option<[String; 2]> {
    let rate = last.figure(|f| f.requests_per_s).ok()?;
    if let Some(planned) = last.rate.filter(|planned| rate < planned * (1.0 - FLAT)) {
        let planned = digits(planned);
        return Some([format!("{planned}/s planned"), format!("{}/s completed", digits(rate))]);
    }
    let clients = last.clients?;
    let before = lower.iter().rev().find(|result: &&&MeasurementResult| {
        result.clients.is_some_and(|fewer| f64::from(fewer) * MORE <= f64::from(clients))
    })?;
    let less = before.figure(|f| f.requests_per_s).ok()?;
    let both = [(less, before.clients?), (rate, clients)];
    (rate < less * (1.0 + FLAT))
        .then(|| both.map(|(rate, clients)| format!("{}/s with {clients} clients", digits(rate))))
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
            (of(Some(0.99), Some(0.5), None, false), "gateway"),
            (of(Some(0.5), Some(0.97), None, false), "client"),
            // Half and half of one core.
            (of(Some(0.5), Some(0.5), Some(0.45), true), "client+provider core"),
            (of(Some(0.5), Some(0.5), Some(0.45), false), "no core"),
            (of(Some(0.5), Some(0.5), Some(0.95), false), "provider"),
            (of(Some(0.95), Some(0.95), None, false), "gateway and client"),
            (of(Some(0.3), Some(0.3), Some(0.3), true), "no core"),
            (of(None, Some(0.95), None, false), "client"),
            (of(None, Some(0.5), None, false), "not known"),
        ] {
            assert_eq!(busy.bottleneck(), expected, "{busy:?}");
        }
        let store = BusyShares { store: Some(0.97), ..of(Some(0.4), Some(0.3), None, false) };
        assert_eq!(store.bottleneck(), "store");
        let text = "CPU use gateway 40.0%, client 30.0%, store 97.0%: the store is the bottleneck";
        assert!(store.sentence().starts_with(text), "{}", store.sentence());
        // Two cores for the gateway, of which it fills one.
        let two = BusyShares { gateway_cores: Some(2.0), ..of(Some(1.0), Some(0.2), None, false) };
        assert_eq!(two.bottleneck(), "no core");
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
        for (busy, expected) in
            [(of(1.5, 0.5), "no core"), (of(1.5, 0.99), "gateway"), (of(7.8, 0.975), "gateway")]
        {
            assert_eq!(busy.bottleneck(), expected, "{busy:?}");
        }
        let busy = of(1.5, 0.5);
        let text = "CPU use gateway 50.0%, client 30.0%: none is saturated";
        assert!(busy.sentence().starts_with(text), "{}", busy.sentence());
        let upstream = BusyShares { provider: Some(1.5), provider_full: Some(0.4), ..busy };
        assert_eq!(upstream.bottleneck(), "no core", "it has cores left");
        let mut full = result("x", 8, figures(500.0, 1.0));
        full.passes[0].busy = of(7.8, 0.975);
        let text = limiter(&[&full]).unwrap();
        assert!(
            text.starts_with("limited by the gateway's own CPU, which was 97.5% busy"),
            "{text}"
        );
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
        let text = "CPU use gateway 50.0%, client+provider core 37.5%: none is saturated";
        assert!(busy.sentence().starts_with(text), "{}", busy.sentence());
        let full = BusyShares { generator: Some(0.8), ..busy };
        let least = "core is the bottleneck; the throughput is a lower bound of the gateway's";
        assert!(full.sentence().ends_with(least), "{}", full.sentence());
        let alone = BusyShares { shared: false, gateway: None, ..busy };
        let unknown = "CPU use client 25.0%, provider 12.5%: the gateway's is not known";
        assert_eq!(alone.sentence(), unknown);
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
        assert!(limiter(&[&open]).unwrap().contains("1,000/s planned and 800/s completed"));
        open.rate = Some(810.0);
        assert_eq!(limiter(&[&open]), None);
    }

    fn limiter_of_two(few: &MeasurementResult, many: &MeasurementResult) -> Option<String> {
        limiter(&[few, many])
    }
}
