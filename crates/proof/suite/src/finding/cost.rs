//! The cost of a layer, and the relative cost of two endpoints.

use plimsoll_harness::statistics::{Spread, paired_changes, paired_differences};
use plimsoll_report::format::{percent, time_us};

use super::Finding;
use crate::result::{Figures, MeasurementResult};

/// The throughput that a variant loses to its base, paired by pass, and the CPU time that it adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// `1 - variant / base`, paired by pass.
    pub(crate) throughput: Spread,
    /// CPU microseconds per request, variant minus base; `None` if that is not measured.
    pub(crate) cpu_us: Option<f64>,
    /// Whether zero is within the range of the passes, or the range of the base is wider than the
    /// difference.
    pub(crate) noise: bool,
}

/// A cost is the median of at least this many pairs of valid passes: one pair shows a difference,
/// never how much such differences vary.
pub(crate) const FEWEST_PAIRS: usize = 3;

/// The cost of a variant; `None` with too few pairs of usable passes.
pub(crate) fn cost(base: &MeasurementResult, variant: &MeasurementResult) -> Option<Cost> {
    let rates = |result: &MeasurementResult| result.usable_figures(|f| f.requests_per_s?.usable());
    let drops = paired_changes(&rates(base), &rates(variant)).into_iter().map(|change| -change);
    let throughput = Spread::of(&drops.collect::<Vec<_>>())?;
    if throughput.count < FEWEST_PAIRS {
        return None;
    }
    let noise_of_base = base.spread(|f| f.requests_per_s)?.relative();
    let cpu = |result: &MeasurementResult| result.usable_figures(|f| f.gateway_cpu_us);
    let cpu_us = Spread::of(&paired_differences(&cpu(base), &cpu(variant)));
    let cpu_us = cpu_us.filter(|cpu| cpu.count >= FEWEST_PAIRS).map(|cpu| cpu.median);
    let noise = throughput.spans_zero() || throughput.median.abs() <= noise_of_base;
    Some(Cost { throughput, cpu_us, noise })
}

/// The costs of some variants as sentences, and a warning about those that could not be told.
pub(crate) fn costs(base: &MeasurementResult, variants: &[MeasurementResult]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unknown = Vec::new();
    for variant in variants {
        match cost(base, variant) {
            Some(cost) => findings.push(cost.finding(&variant.label)),
            None => unknown.push(&*variant.label),
        }
    }
    if !unknown.is_empty() {
        findings.push(Finding::warning(format!(
            "no cost is given for {}: it takes {FEWEST_PAIRS} pairs of passes with {} whose rates may be used",
            unknown.join(", "),
            base.label
        )));
    }
    findings
}

impl Cost {
    /// The Cost column.
    pub(crate) fn text(&self) -> String {
        let Spread { low, median, high, count } = self.throughput;
        let range = if count > 1 {
            format!(" ({} .. {})", percent(low), percent(high))
        } else {
            String::new()
        };
        format!("{}{range}", percent(median))
    }

    /// The sentence.
    pub(crate) fn finding(&self, what: &str) -> Finding {
        let cpu = self.cpu_us.map(|cpu| format!(", {} of CPU time per request", time_us(cpu)));
        let cpu = cpu.unwrap_or_default();
        if self.noise {
            return Finding::note(format!(
                "{what}: no difference in throughput beyond noise ({}){cpu}",
                self.text()
            ));
        }
        if self.throughput.median > 0.0 {
            return Finding::note(format!("{what} costs {} of throughput{cpu}", self.text()));
        }
        let gain = percent(-self.throughput.median);
        Finding::note(format!(
            "{what}: {gain} more throughput than without it: what it costs is not shown{cpu}"
        ))
    }
}

/// The cost of an endpoint relative to a cheaper one.
pub(crate) fn relative(
    what: &str,
    cheap: &MeasurementResult,
    expensive: &MeasurementResult,
) -> Option<Finding> {
    let (cheap_figures, expensive_figures) = (cheap.figures()?, expensive.figures()?);
    let rate = |figures: &Figures| figures.requests_per_s?.usable();
    let rates = rate(&cheap_figures)? / rate(&expensive_figures)?;
    let times = cheap_figures.gateway_cpu_us.zip(expensive_figures.gateway_cpu_us);
    Some(Finding::note(match times {
        Some((cheap, expensive)) => format!(
            "{what}: {:.2} times the CPU time of the gateway per request ({} against {}), and {rates:.2} times fewer requests/s",
            expensive / cheap,
            time_us(expensive),
            time_us(cheap)
        ),
        None => format!("{what}: {rates:.2} times fewer requests/s"),
    }))
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Refusal;

    use super::super::fixtures::{figures, result};
    use super::*;

    fn passes(rates: &[f64]) -> MeasurementResult {
        let mut result = result("x", 1, figures(1.0, 1.0));
        result.passes = rates.iter().map(|rate| figures(*rate, 1.0)).collect();
        result
    }

    #[test]
    fn costs_are_paired_by_pass() {
        // The machine gets faster from pass to pass; the cost stays 10 %.
        let found = cost(&passes(&[100.0, 200.0, 300.0]), &passes(&[90.0, 180.0, 270.0])).unwrap();
        assert!((found.throughput.median - 0.1).abs() < 1e-9);
        assert!((found.throughput.high - found.throughput.low).abs() < 1e-9);
    }

    #[test]
    fn a_difference_within_the_noise_is_called_noise() {
        for (base, variant, noise) in [
            ([100.0, 101.0, 100.0], [92.0, 92.0, 91.0], false),
            ([100.0, 101.0, 100.0], [101.0, 99.0, 100.0], true),
            // 5 % less, but the base itself varies by more.
            ([100.0, 120.0, 90.0], [95.0, 114.0, 85.5], true),
            ([100.0, 101.0, 100.0], [110.0, 111.0, 112.0], false),
        ] {
            let found = cost(&passes(&base), &passes(&variant)).unwrap();
            assert_eq!(found.noise, noise, "{base:?} {variant:?}");
            assert_eq!(found.finding("y").text.contains("beyond noise"), noise);
        }
    }

    #[test]
    fn a_cost_takes_three_pairs_of_usable_passes() {
        let base = passes(&[100.0; 4]);
        let mut variant = passes(&[90.0, 90.0, 90.0, 90.0]);
        variant.passes[0].invalid = Some("late".to_owned());
        assert_eq!(cost(&base, &variant).unwrap().throughput.count, 3);
        // Refusals are faster than answers, and no cost at all.
        variant.passes[1].errors = variant.passes[1].requests;
        assert_eq!(cost(&base, &variant), None);
        assert_eq!(cost(&passes(&[]), &variant), None);
        // Nor is what the generator kept down.
        let mut slowed = passes(&[90.0; 3]);
        slowed.passes[0].requests_per_s.as_mut().unwrap().refused = Some(Refusal::Generator);
        assert_eq!(cost(&base, &slowed), None);
        let text = &costs(&base, &[variant])[0].text;
        assert_eq!(
            text,
            "no cost is given for x: it takes 3 pairs of passes with x whose rates may be used"
        );
    }

    #[test]
    fn an_endpoint_is_compared_by_cpu_time_where_it_is_known() {
        let with = |rate, cpu| {
            let figures = Figures { gateway_cpu_us: cpu, ..figures(rate, 1.0) };
            result("x", 1, figures)
        };
        let text = relative("m", &with(68_000.0, Some(10.0)), &with(34_000.0, Some(20.0)));
        assert!(text.unwrap().text.contains("2.00 times the CPU time"));
        let text = relative("m", &with(68_000.0, None), &with(34_000.0, None)).unwrap().text;
        assert_eq!(text, "m: 2.00 times fewer requests/s");
    }
}
