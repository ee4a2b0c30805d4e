//! Tails, errors, and the validity of the figures.

use plimsoll_metrics::{Bias, BoundedFigure, Refusal};
use plimsoll_report::format::{count, limited_time, percent, time};

use super::Finding;
use crate::result::{Figures, MeasurementResult, Unusable};

fn measured(results: &[MeasurementResult]) -> impl Iterator<Item = (&MeasurementResult, Figures)> {
    results.iter().filter_map(|result| Some((result, result.figures()?)))
}

/// The longest tail of all. What the generator added to one makes it "at most"; nothing is said
/// where requests had no end, and one of them might be longer.
pub(crate) fn tails(results: &[MeasurementResult]) -> Option<Finding> {
    let p99 = longest(results, |f| f.p99_ms).map(|p99| format!("the highest p99 is {p99}"));
    let max = longest(results, |f| f.max_ms);
    let max = max.map(|max| format!("the longest of all requests took {max}"));
    let parts: Vec<_> = p99.into_iter().chain(max).collect();
    let left_out = results.iter().any(|result| result.figures().is_none());
    let of = if left_out { "of what may be used, " } else { "" };
    (!parts.is_empty()).then(|| Finding::note(format!("tails: {of}{}", parts.join(", and "))))
}

/// The longest of a time, and whose it is.
fn longest(
    results: &[MeasurementResult],
    of: fn(&Figures) -> Option<BoundedFigure>,
) -> Option<String> {
    let all = measured(results).filter_map(|(result, figures)| Some((result, of(&figures)?)));
    let all: Vec<_> = all.collect();
    if all.iter().any(|(_, figure)| figure.refused == Some(Refusal::Censored)) {
        return None;
    }
    let (result, figure) = all.into_iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let most = if figure.refused.is_some() { "at most " } else { "" };
    Some(format!("{most}{} ({})", time(figure.value), result.label))
}

/// The most that the gateway's store used; nothing where it was not watched.
pub(crate) fn store(results: &[MeasurementResult]) -> Option<Finding> {
    let used =
        measured(results).filter_map(|(result, figures)| Some((result, figures.busy.store?)));
    let (result, most) = used.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let text = format!("the store used at most {} of a core ({})", percent(most), result.label);
    Some(Finding::note(text))
}

/// The largest percentile that is below a millisecond.
pub(crate) fn sub_millisecond(result: &MeasurementResult) -> Option<Finding> {
    let figures = result.figures()?;
    let text = if let Some(max) = is_below(figures.max_ms) {
        format!("every request took less than a millisecond (max {})", time(max))
    } else if let Some(p99) = is_below(figures.p99_ms) {
        format!("99 % of the requests took less than a millisecond (p99 {})", time(p99))
    } else {
        let p50 = is_below(figures.p50_ms)?;
        let p99 = match figures.p99_ms {
            Some(p99) if p99.limits(Bias::Adds)[0] >= 1.0 => {
                format!("p99 is {}, so it is not sub-millisecond as a whole", time(p99.value))
            }
            Some(p99) => format!("the p99 of {} leaves the rest open", limited_time(Some(p99))),
            None => "there are too few requests for a p99".to_owned(),
        };
        format!("half of the requests took less than a millisecond (p50 {}); {p99}", time(p50))
    };
    Some(Finding::note(format!("{}: {text}", result.label)))
}

/// The generator can only have added to a time; a request without an end may be longer.
fn is_below(figure: Option<BoundedFigure>) -> Option<f64> {
    let ended = figure.filter(|figure| figure.refused != Some(Refusal::Censored))?;
    (ended.value < 1.0).then_some(ended.value)
}

/// Whether a figure has a limit in the tables that is the generator's.
pub(crate) fn is_limited(results: &[MeasurementResult]) -> bool {
    measured(results).any(|(_, figures)| refused(&figures, Refusal::Generator).next().is_some())
}

/// The figures that requests without an end may make longer.
pub(crate) fn censored(results: &[MeasurementResult]) -> Option<Finding> {
    let mut all: Vec<_> = measured(results)
        .map(|(result, figures)| {
            (result, refused(&figures, Refusal::Censored).collect::<Vec<_>>().join(", "))
        })
        .filter(|(_, names)| !names.is_empty())
        .map(|(result, names)| format!("{} ({names})", result.label))
        .collect();
    let more = all.len().saturating_sub(MOST_NAMED);
    all.truncate(MOST_NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let words = Refusal::Censored.words();
    let text = format!("{words}: {}{more}", all.join("; "));
    (!all.is_empty()).then(|| Finding::warning(text))
}

/// The most measurements that a sentence about single figures names.
const MOST_NAMED: usize = 4;

/// The names of the figures whose value alone proves nothing for this reason.
fn refused(figures: &Figures, why: Refusal) -> impl Iterator<Item = &'static str> + use<> {
    let named = [
        ("RPS", figures.requests_per_s),
        ("average", figures.mean_ms),
        ("p50", figures.p50_ms),
        ("p95", figures.p95_ms),
        ("p99", figures.p99_ms),
        ("max", figures.max_ms),
        ("TTFT p50", figures.ttft_p50_ms),
        ("TTFT p99", figures.ttft_p99_ms),
        ("gap p99", figures.gap_p99_ms),
    ];
    named
        .into_iter()
        .filter(move |(_, figure)| {
            figure.is_some_and(move |figure: BoundedFigure| figure.refused == Some(why))
        })
        .map(|(name, _)| name)
}

/// The errors of all measurements that are valid, whatever their gate says.
pub(crate) fn errors(results: &[MeasurementResult]) -> Option<Finding> {
    let mut judged = results.iter().filter(|result| !result.errors_expected);
    let valid = judged.clone().filter(|result| !result.is_invalid());
    let requests: u64 = valid.clone().map(|result| shown_figures(result).requests).sum();
    let errors: u64 = valid.clone().map(|result| shown_figures(result).errors).sum();
    let worst = valid.max_by_key(|result| shown_figures(result).errors)?;
    let all_usable = judged.clone().all(|result| result.why_lacking().is_none());
    Some(match errors {
        0 if requests == 0 => return None,
        0 if judged.any(|result| result.busy_host().is_some()) => return None,
        0 if all_usable => Finding::good(format!("no errors in {} requests", count(requests))),
        0 => return None,
        _ => Finding::warning(format!(
            "{} of {} requests had no expected answer, most in: {}{}",
            count(errors),
            count(requests),
            worst.label,
            shown_figures(worst).error_kinds.map(|kinds| format!(" ({kinds})")).unwrap_or_default()
        )),
    })
}

fn shown_figures(result: &MeasurementResult) -> Figures {
    result.shown().unwrap_or_default()
}

/// Measurements that must not be used, and why; and passes that were left out.
pub(crate) fn unusable(results: &[MeasurementResult]) -> Vec<Finding> {
    results.iter().filter_map(busy_finding).collect()
}

fn busy_finding(result: &MeasurementResult) -> Option<Finding> {
    let label = &result.label;
    if let Some(why) = result.why_unusable() {
        if result.is_past_the_generator() {
            let text = format!("{label}: more than the generator can send on this host; {why}");
            return Some(Finding::note(text));
        }
        let text = match why {
            Unusable::NotMeasured(why) => format!("could not be measured{why}"),
            Unusable::Invalid(why) => format!("INVALID, do not use the figures: {why}"),
            why => format!("do not use the figures: {why}"),
        };
        return Some(Finding::warning(format!("{label}: {text}")));
    }
    let all = result.passes.len();
    let left_out = all - result.usable().len();
    let why = result
        .passes
        .iter()
        .find_map(|pass: &Figures| pass.invalid.clone().or_else(|| pass.gated(result.gate())))
        .filter(|_| left_out > 0)?;
    Some(Finding::warning(format!("{label}: {left_out} of {all} passes are left out: {why}")))
}

/// What other processes and machines took from this host: the figures of these measurements are
/// those of a busy host.
pub(crate) fn busy_host(results: &[MeasurementResult]) -> Option<Finding> {
    let all: Vec<_> = results
        .iter()
        .filter_map(|result| Some((result, MeasurementResult::busy_in_any_pass(result)?)))
        .collect();
    let (first, why) = all.first()?;
    Some(Finding::warning(format!(
        "this host was busy during {} of {} measurements ({}: {why}): they give no capacity, and a drop against an earlier result is not judged",
        all.len(),
        results.len(),
        first.label
    )))
}

#[cfg(test)]
mod tests {
    use super::super::Tone;
    use super::super::fixtures::{figures, result};
    use super::*;

    #[test]
    fn a_store_that_was_watched_has_its_highest_use() {
        let with = |label, store| {
            let mut one = result(label, 1, figures(1.0, 1.0));
            one.passes[0].busy.store = store;
            one
        };
        let text = store(&[with("a", Some(0.2)), with("b", Some(0.75)), with("c", None)]).unwrap();
        assert_eq!(text.text, "the store used at most 75.0% of a core (b)");
        assert_eq!(store(&[with("a", None)]), None);
    }

    #[test]
    fn sub_millisecond_names_the_percentile_that_is() {
        for (p50, p99, max, part) in [
            (0.45, Some(0.78), 0.9, Some("every request")),
            (0.45, Some(0.78), 7.17, Some("99 % of the requests")),
            (0.9, Some(13.0), 58.0, Some("not sub-millisecond as a whole")),
            (0.9, None, 58.0, Some("too few requests for a p99")),
            (4.59, Some(20.0), 41.64, None),
        ] {
            let [p50_ms, p99_ms, max_ms] =
                [Some(p50), p99, Some(max)].map(|value| value.map(BoundedFigure::exact));
            let figures = Figures { p50_ms, p99_ms, max_ms, ..figures(1.0, 1.0) };
            let finding = sub_millisecond(&result("x", 1, figures)).map(|finding| finding.text);
            let fits = match part {
                None => finding.is_none(),
                Some(part) => finding.as_ref().is_some_and(|text| text.contains(part)),
            };
            assert!(fits, "{part:?}: {finding:?}");
        }
    }

    #[test]
    fn refused_figures_are_named_and_say_nothing() {
        let refuse = |figure: &mut Option<BoundedFigure>, why| {
            figure.as_mut().unwrap().refused = Some(why);
        };
        let (good, mut bad) = (result("good", 1, figures(1.0, 0.4)), figures(1.0, 0.5));
        assert!(!is_limited(std::slice::from_ref(&good)));
        assert_eq!(censored(std::slice::from_ref(&good)), None);
        refuse(&mut bad.p99_ms, Refusal::Generator);
        refuse(&mut bad.max_ms, Refusal::Censored);
        let bad = result("bad", 1, bad);
        let text = tails(&[good.clone(), bad.clone()]).unwrap().text;
        // Its longest might be longer than the other's.
        assert_eq!(text, "tails: the highest p99 is at most 500us (bad)");
        assert!(tails(std::slice::from_ref(&good)).unwrap().text.contains("p99 is 400us (good)"));
        let text = sub_millisecond(&bad).unwrap().text;
        assert_eq!(text, "bad: 99 % of the requests took less than a millisecond (p99 500us)");
        let p99 = BoundedFigure {
            value: 1.2,
            bound: 0.5,
            interval: None,
            refused: Some(Refusal::Generator),
        };
        let open = Figures { p99_ms: Some(p99), ..figures(1.0, 0.4) };
        let text = sub_millisecond(&result("open", 1, open)).unwrap().text;
        assert!(text.ends_with("; the p99 of 1.20ms (-500us) leaves the rest open"), "{text}");
        assert!(is_limited(&[good.clone(), bad.clone()]));
        let text = censored(&[good, bad]).unwrap().text;
        assert_eq!(text, "too many requests had no end, and may have been longer: bad (max)");
    }

    #[test]
    fn invalid_measurements_are_named_and_not_used() {
        let mut bad = result("bad", 1, figures(9.0, 999.0));
        bad.passes[0].invalid = Some("late".to_owned());
        let results = [result("good", 1, figures(1.0, 2.0)), bad];
        let text = tails(&results).unwrap().text;
        assert!(text.contains("of what may be used, the highest p99 is 2.00ms (good)"), "{text}");
        let found = unusable(&results);
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
        assert_eq!(found.text, "1,234 of 20,000 requests had no expected answer, most in: b");
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
        let found = busy_host(&[result("a", 1, figures(1.0, 1.0)), busy]).unwrap();
        let begin = "this host was busy during 1 of 2 measurements (b: 12.0% of its CPU time";
        assert!(found.text.starts_with(begin), "{}", found.text);
        assert_eq!(busy_host(&[]), None);
    }
}
