//! How throughput and response times scale with the number of clients.

use plimsoll_report::format::{digits, percent, time};

use super::{Bottleneck, Finding, bottleneck};
use crate::result::MeasurementResult;

/// Throughput is flat if it changes by at most this share, or by at most the spread of the passes.
const FLAT_CHANGE: f64 = 0.15;
/// Flat throughput means saturation only if there are at least this many times as many clients.
const MIN_FACTOR: f64 = 4.0;
/// Degradation is graceful if p99 grows at most by this times the factor of the clients.
const GRACEFUL_GROWTH: f64 = 2.0;

/// The ends of a sweep: the results with the fewest and with the most clients, and the factor
/// between their numbers of clients.
fn ends(sweep: &[MeasurementResult]) -> Option<(&MeasurementResult, &MeasurementResult, f64)> {
    let measured = sweep.iter().filter(|result| result.why_unusable().is_none());
    let few = measured.clone().min_by_key(|result| number_of_clients(result))?;
    let many = measured.max_by_key(|result| number_of_clients(result))?;
    let factor = f64::from(number_of_clients(many)) / f64::from(number_of_clients(few).max(1));
    (factor > 1.0).then_some((few, many, factor))
}

fn number_of_clients(result: &MeasurementResult) -> u32 {
    result.clients.unwrap_or(0)
}

/// Whether throughput is flat although there are many more clients, and the bottleneck.
pub(crate) fn saturation(what: &str, sweep: &[MeasurementResult]) -> Option<Finding> {
    let (few, many, factor) = ends(sweep)?;
    if factor < MIN_FACTOR {
        return None;
    }
    let (low, high) = (few.spread(|f| f.requests_per_s)?, many.spread(|f| f.requests_per_s)?);
    let change = high.median / low.median - 1.0;
    let noise = low.relative().max(high.relative());
    let rates = format!(
        "{what}: {}/s with {} clients and {}/s with {} ({factor:.0} times as many)",
        digits(low.median),
        few.clients?,
        digits(high.median),
        many.clients?
    );
    if let Some(why) = many.busy_host().or_else(|| few.busy_host()) {
        return Some(no_conclusion(&rates, &why));
    }
    let busy = many.figures()?.busy;
    let limit = bottleneck(&busy).sentence(&busy);
    let saturated =
        matches!(bottleneck(&busy), Bottleneck::Gateway | Bottleneck::Load | Bottleneck::Both);
    Some(if change.abs() <= FLAT_CHANGE.max(noise) {
        let so = if saturated { ", with a core saturated" } else { "" };
        Finding::note(format!("{rates}: throughput is flat{so}; {limit}"))
    } else if change > 0.0 {
        Finding::note(format!(
            "{rates}: throughput still rises by {}, so {} clients are not its limit",
            percent(change),
            few.clients?
        ))
    } else {
        Finding::warning(format!(
            "{rates}: throughput falls by {} under contention; {limit}",
            percent(-change)
        ))
    })
}

/// Of figures that were measured while others used the host.
pub(crate) fn no_conclusion(text: &str, why: &str) -> Finding {
    Finding::warning(format!("{text}: no conclusion, because the host was busy: {why}"))
}

/// Whether times grow no faster than the number of clients, without errors.
pub(crate) fn degradation(what: &str, sweep: &[MeasurementResult]) -> Option<Finding> {
    let (few, many, factor) = ends(sweep)?;
    let (before, after) = (usable_p99(few)?, usable_p99(many)?);
    let growth = after / before;
    let errors = few.figures()?.errors + many.figures()?.errors;
    let text = format!(
        "{what}: p99 {} with {} clients and {} with {}: {growth:.1} times as long with {factor:.0} times as many",
        time(before),
        few.clients?,
        time(after),
        many.clients?
    );
    if let Some(why) = many.busy_host().or_else(|| few.busy_host()) {
        return Some(no_conclusion(&text, &why));
    }
    Some(if errors > 0 {
        Finding::warning(format!("{text}, and {errors} errors"))
    } else if growth > factor * GRACEFUL_GROWTH {
        Finding::warning(format!("{text}; no errors, but the tail grows faster than the load"))
    } else {
        Finding::good(format!("{text}; no errors: it degrades gracefully"))
    })
}

fn usable_p99(result: &MeasurementResult) -> Option<f64> {
    result.figure(|f| f.p99_ms).ok()
}

#[cfg(test)]
mod tests {
    use super::super::Tone;
    use super::super::fixtures::{busy, figures, result};
    use super::*;
    use crate::result::Figures;
    use plimsoll_metrics::Refusal;

    fn sweep(few: (f64, f64), many: (f64, f64)) -> [MeasurementResult; 2] {
        let with = |(rate, p99)| Figures { busy: busy(0.99, 0.4), ..figures(rate, p99) };
        [result("a", 32, with(few)), result("b", 256, with(many))]
    }

    #[test]
    fn flat_throughput_is_saturation_and_the_busy_core_is_named() {
        for (few, many, part) in [
            (68_010.0, 67_934.0, "flat, with a core saturated; the gateway's core is 99.0% busy"),
            (30_000.0, 60_000.0, "still rises by 100%"),
            (60_000.0, 30_000.0, "falls by 50.0% under contention"),
        ] {
            let finding = saturation("x", &sweep((few, 1.0), (many, 8.0))).unwrap();
            assert!(finding.text.contains(part), "{}", finding.text);
        }
    }

    #[test]
    fn a_change_within_the_noise_is_flat() {
        let [few, mut many] = sweep((100.0, 1.0), (130.0, 1.0));
        assert!(saturation("x", &[few.clone(), many.clone()]).unwrap().text.contains("rises"));
        many.passes.push(figures(190.0, 1.0));
        many.passes.push(figures(80.0, 1.0));
        assert!(saturation("x", &[few, many]).unwrap().text.contains("flat"));
    }

    #[test]
    fn a_tail_may_grow_as_the_load_does() {
        for (p99, errors, tone, part) in [
            (8.2, 0, Tone::Good, "degrades gracefully"),
            (40.0, 0, Tone::Warning, "grows faster than the load"),
            (2.0, 3, Tone::Warning, "and 3 errors"),
        ] {
            let [few, mut many] = sweep((1.0, 0.78), (1.0, p99));
            many.passes[0].errors = errors;
            let finding = degradation("x", &[few, many]).unwrap();
            assert_eq!(finding.tone, tone);
            assert!(finding.text.contains(part), "{}", finding.text);
        }
    }

    #[test]
    fn without_figures_there_is_no_finding() {
        let [few, mut many] = sweep((1.0, 1.0), (1.0, 1.0));
        many.passes[0].invalid = Some("late".to_owned());
        assert_eq!(saturation("x", &[few.clone(), many]), None);
        let refused = Figures { p99_ms: None, ..figures(1.0, 1.0) };
        assert_eq!(degradation("x", &[few.clone(), result("b", 256, refused)]), None);
        let (mut kept_down, mut unknown) = (figures(1.0, 1.0), figures(1.0, 1.0));
        kept_down.requests_per_s.as_mut().unwrap().refused = Some(Refusal::Generator);
        unknown.p99_ms.as_mut().unwrap().refused = Some(Refusal::Censored);
        assert_eq!(saturation("x", &[few.clone(), result("b", 256, kept_down)]), None);
        assert_eq!(degradation("x", &[few, result("b", 256, unknown)]), None);
        assert_eq!(saturation("x", &[]), None);
    }

    #[test]
    fn flat_throughput_is_saturation_only_where_a_core_is_full() {
        let [few, mut many] = sweep((100.0, 1.0), (100.0, 1.0));
        many.passes[0].busy = busy(0.19, 0.1);
        let text = saturation("x", &[few.clone(), many.clone()]).unwrap().text;
        assert!(!text.contains("saturated;") && text.contains("none is saturated"), "{text}");
        many.passes[0].busy_host = Some("stolen".to_owned());
        let text = saturation("x", &[few, many]).unwrap().text;
        assert!(text.ends_with("no conclusion, because the host was busy: stolen"), "{text}");
    }
}
