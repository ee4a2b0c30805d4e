//! Errors, and the validity of the figures.

use plimsoll_metrics::Refusal;
use plimsoll_report::format::count;

use super::Finding;
use crate::comparison_result::ComparisonResult;
use crate::result::{Figures, MeasurementResult};

/// Whether a table has a figure that the generator limited.
pub(crate) fn is_limited(results: &[MeasurementResult]) -> bool {
    let figures = results.iter().filter_map(MeasurementResult::figures);
    let all = figures.flat_map(|f| {
        let times = [f.mean_ms, f.p50_ms, f.p95_ms, f.p99_ms, f.max_ms];
        let others = [f.requests_per_s, f.ttft_p50_ms, f.ttft_p99_ms, f.gap_p99_ms];
        times.into_iter().chain(others).flatten()
    });
    { all }.any(|figure| figure.refused == Some(Refusal::Generator))
}

/// The errors of all measurements that are valid, whatever their gate says.
pub(crate) fn errors(results: &[MeasurementResult]) -> Option<Finding> {
    let mut judged = results.iter().filter(|result| !result.errors_expected);
    let valid = judged.clone().filter(|result| !result.is_invalid());
    let requests: u64 = valid.clone().map(|result| shown_figures(result).requests).sum();
    let errors: u64 = valid.clone().map(|result| shown_figures(result).errors).sum();
    let worst = valid.max_by_key(|result| shown_figures(result).errors)?;
    if errors == 0 {
        let is_sure = judged.all(|one| one.why_lacking().is_none() && one.busy_host().is_none());
        let text = format!("no errors in {} requests", count(requests));
        return (requests > 0 && is_sure).then(|| Finding::good(text));
    }
    let kinds = shown_figures(worst).error_kinds().map(|kinds| format!(" ({kinds})"));
    Some(Finding::warning(format!(
        "{} of {} requests had no expected response, most in: {}{}",
        count(errors),
        count(requests),
        worst.label,
        kinds.unwrap_or_default()
    )))
}

fn shown_figures(result: &MeasurementResult) -> Figures {
    result.shown().unwrap_or_default()
}

/// Measurements and passes that must not be used, and why: a line for each reason.
pub(crate) fn unusable(results: &[MeasurementResult]) -> Vec<String> {
    let unusable = results.iter().filter(|result| !result.is_past_the_generator());
    by_reason(unusable.filter_map(|result| {
        let label = &*result.label;
        if let Some(why) = result.why_unusable() {
            return Some((label, why.to_string()));
        }
        let (all, used) = (result.passes.len(), result.usable().len());
        let why = result
            .passes
            .iter()
            .find_map(|pass: &Figures| pass.invalid.clone().or_else(|| pass.gated(result.gate())))
            .filter(|_| used < all)?;
        Some((label, format!("{} of {all} passes are left out: {why}", all - used)))
    }))
}

/// A line for each reason: the first that has it, and the number of all.
pub(crate) fn by_reason<'r>(all: impl Iterator<Item = (&'r str, String)>) -> Vec<String> {
    let mut reasons: Vec<(String, &str, usize)> = Vec::new();
    for (label, why) in all {
        match reasons.iter_mut().find(|(known, ..)| *known == why) {
            Some((.., number)) => *number += 1,
            None => reasons.push((why, label, 1)),
        }
    }
    let lines = reasons.into_iter().map(|(why, label, number)| match number {
        1 => format!("{label}: {why}"),
        _ => format!("{label} and {} more: {why}", number - 1),
    });
    lines.collect()
}

/// The measurements and comparisons on a host that others used, in one line.
pub(crate) fn busy_host(
    results: &[MeasurementResult],
    compared: &[ComparisonResult],
) -> Option<String> {
    let busy = results.iter().filter_map(MeasurementResult::busy_in_any_pass);
    let busy: Vec<_> =
        busy.chain(compared.iter().filter_map(|one| one.busy_host.as_ref())).collect();
    let (number, all) = (busy.len(), results.len() + compared.len());
    let why = busy.first()?;
    Some(format!("this host was busy during {number} of {all} measurements: {why}"))
}

#[cfg(test)]
mod tests {
    use super::super::Tone;
    use super::super::fixtures::{figures, result};
    use super::*;

    #[test]
    fn a_reason_is_one_line_with_the_number_of_its_measurements() {
        let invalid = |label, why: &str| {
            let mut bad = result(label, 1, figures(9.0, 999.0));
            bad.passes[0].invalid = Some(why.to_owned());
            bad
        };
        let good = result("good", 1, figures(1.0, 2.0));
        let results = [good, invalid("a", "late"), invalid("b", "late"), invalid("c", "slow")];
        let expected = [
            "a and 1 more: the measurement is invalid: late",
            "c: the measurement is invalid: slow",
        ];
        assert_eq!(unusable(&results), expected);
    }

    #[test]
    fn errors_are_counted_over_all() {
        let mut wrong = figures(1.0, 1.0);
        wrong.errors = 1_234;
        let results = [result("a", 1, figures(1.0, 1.0)), result("b", 1, wrong)];
        assert_eq!(errors(&results[..1]).unwrap().text, "no errors in 10,000 requests");
        let found = errors(&results).unwrap();
        assert_eq!(found.tone, Tone::Warning);
        assert_eq!(found.text, "1,234 of 20,000 requests had no expected response, most in: b");
        assert_eq!(errors(&[]), None);
        // Without errors where it could be seen, and with measurements where it could not.
        let mut late = result("c", 1, figures(1.0, 1.0));
        late.passes[0].invalid = Some("late".to_owned());
        assert_eq!(errors(&[results[0].clone(), late]), None);
    }

    #[test]
    fn a_busy_host_is_named_once() {
        let mut busy = result("b", 1, figures(1.0, 1.0));
        busy.passes[0].busy_host = Some("12.0% of its CPU time was stolen".to_owned());
        let compared = ComparisonResult::default();
        let results = [result("a", 1, figures(1.0, 1.0)), busy];
        let found = busy_host(&results, std::slice::from_ref(&compared)).unwrap();
        let begin = "this host was busy during 1 of 3 measurements: 12.0% of its CPU time";
        assert!(found.starts_with(begin), "{found}");
        assert_eq!(busy_host(&[], &[]), None);
        let busy = ComparisonResult { busy_host: Some("no idle CPU".to_owned()), ..compared };
        let found = busy_host(&[], &[busy]).unwrap();
        assert_eq!(found, "this host was busy during 1 of 1 measurements: no idle CPU");
    }
}
