//! The limit of a throughput: the bottleneck that `plimsoll why` finds, or a rate that stopped
//! rising.

use plimsoll_report::format::digits;
use plimsoll_why::Answer;

use crate::result::{BusyShares, MeasurementResult};

/// A core with more than this share of CPU time is full: the kernel takes the rest.
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

    /// Whether the load could have sent more: all of its cores together, and its busiest worker.
    fn has_headroom(&self) -> bool {
        let busiest = self.busiest_worker.map(|worker| worker + self.provider_on_core());
        self.load_core().is_some_and(|load| busiest.unwrap_or(load).max(load) < HEADROOM)
    }
}

/// The load's cores, with the provider if it shares them, if they were full: a request that waits
/// there is late, and not because of the gateway.
pub(crate) fn full_load_core(busy: &BusyShares) -> Option<String> {
    let is_full = busy.load_core().is_some_and(|share| share >= SATURATED);
    is_full.then(|| "load core full".to_owned())
}

/// The bottleneck of the last of several results under rising load. `None` if no limit was reached:
/// then the throughput is the load that was asked for, and says nothing about the target's
/// capacity.
pub(crate) fn limiter(levels: &[&MeasurementResult]) -> Option<String> {
    let (last, lower) = levels.split_last()?;
    let figures = last.figures().filter(|figures| figures.busy_host.is_none())?;
    // The throughput of a saturated gateway is valid, though the generator may have limited it in
    // part.
    last.throughput()?;
    if let Some(Answer::Gateway | Answer::Target) = figures.bottleneck {
        return Some("gateway CPU".to_owned());
    }
    if figures.limited || !figures.busy.has_headroom() {
        return None;
    }
    Some(format!("flat: {}", flat_rates(last, lower)?.join(", ")))
}

/// The load that was planned or sent with fewer clients, and the rate that did not rise with it.
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
    fn a_limit_is_a_full_core_or_throughput_that_stopped_rising() {
        let at = |clients, rate, gateway: Option<Answer>, generator| {
            let busy = BusyShares { generator, ..BusyShares::default() };
            let mut result = result("x", clients, figures(rate, 1.0));
            (result.passes[0].busy, result.passes[0].bottleneck) = (busy, gateway);
            result
        };
        for (few, many, shown) in [
            (
                (100, 9_000.0),
                (200, 15_000.0, Some(Answer::Gateway), Some(0.5)),
                Some("gateway CPU"),
            ),
            (
                (100, 9_000.0),
                (200, 9_100.0, None, Some(0.4)),
                Some("flat: 9,000/s with 100 clients, 9,100/s"),
            ),
            // The clients set the rate: six clients and 100 ms are 60 a second.
            ((100, 9_000.0), (200, 18_000.0, None, Some(0.4)), None),
            // The load has no core left: it may be its own limit.
            ((100, 9_000.0), (200, 9_100.0, None, Some(0.95)), None),
            ((100, 9_000.0), (200, 9_100.0, None, None), None),
            // A slightly higher load shows no limit.
            ((190, 9_000.0), (200, 9_100.0, None, Some(0.4)), None),
            // Another component is the bottleneck, or none is proven.
            ((100, 9_000.0), (200, 15_000.0, Some(Answer::Store), Some(0.5)), None),
            ((100, 9_000.0), (200, 15_000.0, Some(Answer::Unknown), Some(0.5)), None),
        ] {
            let few = at(few.0, few.1, None, Some(0.2));
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
        assert!(limiter(&[&open]).unwrap().contains("1,000/s planned, 800/s completed"));
        open.rate = Some(810.0);
        assert_eq!(limiter(&[&open]), None);
    }

    fn limiter_of_two(few: &MeasurementResult, many: &MeasurementResult) -> Option<String> {
        limiter(&[few, many])
    }
}
