//! Tails, errors, and the validity of the figures.

use plimsoll_report::format::{count, percent, time, time_or_dash};

use super::Finding;
use crate::result::{Figures, MeasurementResult};

fn measured(results: &[MeasurementResult]) -> impl Iterator<Item = (&MeasurementResult, Figures)> {
    let valid = results.iter().filter(|result| !result.is_invalid());
    valid.filter_map(|result| Some((result, result.figures()?)))
}

/// The longest tail of all.
pub(crate) fn tails(results: &[MeasurementResult]) -> Option<Finding> {
    let by = |of: fn(&Figures) -> Option<f64>| {
        let all = measured(results).filter_map(|(result, figures)| Some((result, of(&figures)?)));
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let (p99, max) = (by(|f| f.p99_ms)?, by(|f| f.max_ms)?);
    Some(Finding::note(format!(
        "tails: the highest p99 is {} ({}), and the longest of all requests took {} ({})",
        time(p99.1),
        p99.0.label,
        time(max.1),
        max.0.label
    )))
}

/// The largest percentile that is below a millisecond.
pub(crate) fn sub_millisecond(result: &MeasurementResult) -> Option<Finding> {
    let figures = result.figures().filter(|_| !result.is_invalid())?;
    let below = |value: Option<f64>| value.is_some_and(|value| value < 1.0);
    let finding = |part: &str| Some(Finding::note(format!("{}: {part}", result.label)));
    if below(figures.max_ms) {
        finding(&format!(
            "every request took less than a millisecond (max {})",
            time_or_dash(figures.max_ms)
        ))
    } else if below(figures.p99_ms) {
        finding(&format!(
            "99 % of the requests took less than a millisecond (p99 {})",
            time_or_dash(figures.p99_ms)
        ))
    } else if below(figures.p50_ms) {
        let p99 = figures.p99_ms.map_or_else(
            || "there are too few requests for a p99".to_owned(),
            |p99| format!("p99 is {}", time(p99)),
        );
        finding(&format!(
            "half of the requests took less than a millisecond (p50 {}); {p99}, so it is not sub-millisecond as a whole",
            time_or_dash(figures.p50_ms)
        ))
    } else {
        None
    }
}

/// The errors of all measurements.
pub(crate) fn errors(results: &[MeasurementResult]) -> Option<Finding> {
    let measured = |results| measured(results).filter(|(result, _)| !result.errors_expected);
    let requests: u64 = measured(results).map(|(_, figures)| figures.requests).sum();
    let errors: u64 = measured(results).map(|(_, figures)| figures.errors).sum();
    if requests == 0 {
        return None;
    }
    let worst = measured(results).max_by_key(|(_, figures)| figures.errors)?.0;
    Some(match errors {
        0 => Finding::good(format!("no errors in {} requests", count(requests))),
        _ => Finding::warning(format!(
            "{} errors in {} requests, most in: {}",
            count(errors),
            count(requests),
            worst.label
        )),
    })
}

/// Invalid measurements, and why.
pub(crate) fn invalid(results: &[MeasurementResult]) -> Vec<Finding> {
    let finding = |result: &MeasurementResult| {
        if let (Some(error), true) = (&result.error, result.passes.is_empty()) {
            return Some(Finding::warning(format!(
                "{}: could not be measured: {error}",
                result.label
            )));
        }
        let bad: Vec<_> = result.passes.iter().filter_map(|pass| pass.invalid.as_ref()).collect();
        let first = bad.first()?;
        let (bad, all) = (bad.len(), result.passes.len());
        Some(Finding::warning(if bad == all {
            format!("{}: INVALID, do not use the figures: {first}", result.label)
        } else {
            format!(
                "{}: {bad} of {all} passes were invalid and are left out: {first}",
                result.label
            )
        }))
    };
    results.iter().filter_map(finding).collect()
}

/// In shorter measurements the requests in flight at the start and the end distort the law.
const STEADY_S: f64 = 5.0;

/// Little's law in all measurements of the closed model: clients = throughput x response time.
pub(crate) fn littles_law(results: &[MeasurementResult]) -> Option<Finding> {
    let long = |result: &&MeasurementResult| {
        result.figures().is_some_and(|figures| figures.seconds >= STEADY_S)
    };
    let errors = results.iter().filter(long);
    let errors = errors.filter_map(|result| Some((result, result.figures()?.little_error?)));
    let (result, error) = errors.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!(
        "Little's law (clients = throughput x response time) holds within {} in every measurement of 5 s and more (worst: {})",
        percent(error),
        result.label
    );
    Some(if error <= 0.02 {
        Finding::good(text)
    } else {
        Finding::warning(format!(
            "Little's law is off by {} in: {}; the steady state was too short, or a figure is wrong",
            percent(error),
            result.label
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Tone;
    use super::super::fixtures::{figures, result};
    use super::*;

    #[test]
    fn sub_millisecond_names_the_percentile_that_is() {
        for (p50, p99, max, part) in [
            (0.45, Some(0.78), 0.9, Some("every request")),
            (0.45, Some(0.78), 7.17, Some("99 % of the requests")),
            (0.9, Some(13.0), 58.0, Some("not sub-millisecond as a whole")),
            (0.9, None, 58.0, Some("too few requests for a p99")),
            (4.59, Some(20.0), 41.64, None),
        ] {
            let figures =
                Figures { p50_ms: Some(p50), p99_ms: p99, max_ms: Some(max), ..figures(1.0, 1.0) };
            let finding = sub_millisecond(&result("x", 1, figures)).map(|finding| finding.text);
            let fits = match part {
                None => finding.is_none(),
                Some(part) => finding.as_ref().is_some_and(|text| text.contains(part)),
            };
            assert!(fits, "{part:?}: {finding:?}");
        }
    }

    #[test]
    fn invalid_measurements_are_named_and_not_used() {
        let mut bad = result("bad", 1, figures(9.0, 999.0));
        bad.passes[0].invalid = Some("late".to_owned());
        let results = [result("good", 1, figures(1.0, 2.0)), bad];
        assert!(tails(&results).unwrap().text.contains("(good)"));
        let found = invalid(&results);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.starts_with("bad: INVALID"), "{}", found[0].text);
    }

    #[test]
    fn errors_are_counted_over_all() {
        let mut wrong = figures(1.0, 1.0);
        wrong.errors = 1_234;
        let results = [result("a", 1, figures(1.0, 1.0)), result("b", 1, wrong)];
        assert_eq!(errors(&results[..1]).unwrap().text, "no errors in 10,000 requests");
        let found = errors(&results).unwrap();
        assert_eq!(found.tone, Tone::Warning);
        assert_eq!(found.text, "1,234 errors in 20,000 requests, most in: b");
        assert_eq!(errors(&[]), None);
    }

    #[test]
    fn littles_law_is_judged_by_the_worst_measurement() {
        let with = |error| {
            let figures = figures(1.0, 1.0);
            result("x", 1, Figures { little_error: Some(error), seconds: 10.0, ..figures })
        };
        for (worst, tone) in [(0.004, Tone::Good), (0.05, Tone::Warning)] {
            assert_eq!(littles_law(&[with(0.001), with(worst)]).unwrap().tone, tone);
        }
    }
}
