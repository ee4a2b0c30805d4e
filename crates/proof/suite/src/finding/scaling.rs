//! How throughput and response times scale with the number of clients.

use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{limited_rate, limited_time, percent};

use super::Finding;
use crate::ratio::Ratio;
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
    let (before, after) = (few.throughput()?, many.throughput()?);
    let times = Ratio::new(after, before, Bias::Takes)?;
    let rates = format!(
        "{what}: {}/s with {} clients and {}/s with {} ({factor:.0} times as many)",
        limited_rate(Some(before)),
        few.clients?,
        limited_rate(Some(after)),
        many.clients?
    );
    if let Some(why) = many.busy_host().or_else(|| few.busy_host()) {
        return Some(no_conclusion(&rates, &why));
    }
    let busy = many.figures()?.busy;
    let limit = busy.sentence();
    let flat = FLAT_CHANGE.max(noise(few)).max(noise(many));
    if times.holds(|times| 1.0 - times > flat) == Some(true) {
        let fall = percent(1.0 - times.high);
        let text = format!("{rates}: throughput falls by {fall} under contention; {limit}");
        return Some(Finding::warning(text));
    }
    Some(Finding::note(if times.holds(|times| (times - 1.0).abs() <= flat) == Some(true) {
        let so = if busy.is_saturated() { ", with a core saturated" } else { "" };
        format!("{rates}: throughput is flat{so}; {limit}")
    } else if times.holds(|times| times - 1.0 > flat) == Some(true) {
        let (rise, clients) = (percent(times.low - 1.0), few.clients?);
        format!("{rates}: throughput still rises by {rise}, so {clients} clients are not its limit")
    } else {
        format!("{rates}: {OPEN}")
    }))
}

/// A statement that holds at one limit of a figure, and not at the other one.
const OPEN: &str = "no conclusion, because what the generator itself did to the figures decides";

/// Half the range of the passes over their median.
fn noise(result: &MeasurementResult) -> f64 {
    result.spread(|f| f.requests_per_s).map_or(0.0, |spread| spread.relative())
}

/// Of figures that were measured while others used the host.
pub(crate) fn no_conclusion(text: &str, why: &str) -> Finding {
    Finding::warning(format!("{text}: no conclusion, because the host was busy: {why}"))
}

/// Whether times grow no faster than the number of clients, without errors.
pub(crate) fn degradation(what: &str, sweep: &[MeasurementResult]) -> Option<Finding> {
    let (few, many, factor) = ends(sweep)?;
    let (before, after) = (p99(few)?, p99(many)?);
    let growth = Ratio::new(after, before, Bias::Adds)?;
    let errors = few.figures()?.errors + many.figures()?.errors;
    let text = format!(
        "{what}: p99 {} with {} clients and {} with {}: {} times as long with {factor:.0} times as many",
        limited_time(Some(before)),
        few.clients?,
        limited_time(Some(after)),
        many.clients?,
        growth.text(|times| format!("{times:.1}"))
    );
    if let Some(why) = many.busy_host().or_else(|| few.busy_host()) {
        return Some(no_conclusion(&text, &why));
    }
    Some(match growth.holds(|growth| growth > factor * GRACEFUL_GROWTH) {
        _ if errors > 0 => Finding::warning(format!("{text}, and {errors} errors")),
        Some(true) => {
            Finding::warning(format!("{text}; no errors, but the tail grows faster than the load"))
        }
        Some(false) => Finding::good(format!("{text}; no errors: it degrades gracefully")),
        None => Finding::note(format!("{text}; no errors; {OPEN}")),
    })
}

fn p99(result: &MeasurementResult) -> Option<BoundedFigure> {
    result.bounded(|f| f.p99_ms).ok()
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
            (68_010.0, 67_934.0, "flat, with a core saturated; CPU use gateway 99.0%"),
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
        assert_eq!(degradation("x", &[few, result("b", 256, refused)]), None);
        assert_eq!(saturation("x", &[]), None);
    }

    /// Value and bound of the rate, and of the p99.
    fn limited(rate: [f64; 2], p99: [f64; 2]) -> Figures {
        let [requests_per_s, p99_ms] = [rate, p99].map(|[value, bound]| {
            Some(BoundedFigure { value, bound, interval: None, refused: Some(Refusal::Generator) })
        });
        Figures { busy: busy(0.99, 0.4), requests_per_s, p99_ms, ..figures(1.0, 1.0) }
    }

    /// A rate can only have been higher, and a p99 only lower, than with the generator's part: the
    /// limits by hand.
    #[test]
    fn figures_with_limits_are_judged_at_both() {
        for (few, many, throughput, tail) in [
            // 100 to 110, then 98 to 105: at most 10.9 % less and 5 % more.
            (
                limited([100.0, 10.0], [1.0, 0.2]),
                limited([98.0, 7.0], [8.0, 1.0]),
                "is flat, with",
                "grac",
            ),
            // Then 60 to 105: it may have fallen by 45 %.
            (
                limited([100.0, 10.0], [1.0, 0.2]),
                limited([60.0, 45.0], [8.0, 1.0]),
                OPEN,
                "gracefully",
            ),
            // 150 at least, of 110 at most.
            (
                limited([100.0, 10.0], [1.0, 0.2]),
                limited([150.0, 7.0], [20.0, 1.0]),
                "still rises by 36.4%",
                "grows faster",
            ),
            // A p99 of 0.1 to 1 ms, and then of 8: 8 to 80 times, of which 16 are graceful.
            (
                limited([100.0, 0.0], [1.0, 0.9]),
                limited([50.0, 7.0], [8.0, 0.0]),
                "falls by 43.0%",
                OPEN,
            ),
        ] {
            let sweep = [result("a", 32, few), result("b", 256, many)];
            let text = saturation("x", &sweep).unwrap().text;
            assert!(text.contains(throughput), "{throughput}: {text}");
            let text = degradation("x", &sweep).unwrap().text;
            assert!(text.contains(tail), "{tail}: {text}");
        }
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
