//! What may be said, what could have been seen, and what a reader must know.

use plimsoll_metrics::{Judgement, ThresholdResult};
use plimsoll_report::format;

use super::{stated, times};
use crate::claims::FAILURES;
use crate::result::{Claim, Difference, Kind, Versus};

/// So many sentences are shown without a choice.
const ALL_SHOWN: usize = 10;

/// What a file says beyond the screen.
pub(super) fn details(versus: &Versus) -> Vec<String> {
    let control = times::control_line(versus).map(|line| format!("{line}."));
    let mut lines: Vec<String> = control.into_iter().chain(times::other_reasons(versus)).collect();
    lines.extend(stated::sentences(versus));
    lines.extend(open_claims(versus));
    lines.extend(detectable(versus));
    lines.extend(generator(versus));
    lines.extend(with_failures(versus));
    lines.extend(verdicts(versus));
    lines
}

/// What was tested and does not hold; that nothing was, or is said.
fn open_claims(versus: &Versus) -> Option<String> {
    if !versus.invalid.is_empty() {
        return Some("Nothing is said of the targets: the comparison is INVALID.".to_owned());
    }
    if versus.claims.is_empty() {
        return Some("No difference could be tested.".to_owned());
    }
    let open = versus.claims.iter().filter(|claim| !claim.holds).collect();
    let (shown, more) = chosen(versus, open);
    let open: Vec<_> = shown.iter().map(|claim| &*claim.text).collect();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!open.is_empty()).then(|| format!("Open: {}{more}.", open.join("; ")))
}

/// That no sentence holds. Of a target that was down, no test is needed.
pub(super) fn none_proven(versus: &Versus) -> &'static str {
    if versus.targets.iter().any(|target| target.outage.is_some()) {
        "no difference in times is proven"
    } else {
        "no difference is proven"
    }
}

/// Over what the sentences hold.
pub(super) fn scope(versus: &Versus) -> String {
    let tested = match versus.claims.len() {
        1 => "1 comparison".to_owned(),
        n => format!("{n} comparisons"),
    };
    let scope = match versus.rounds {
        0 | 1 => "in this window".to_owned(),
        rounds => format!("over {rounds} rounds"),
    };
    format!("Significant at 5 % ({tested}), {scope}:")
}

/// With many targets there are more sentences than anyone reads: then those on the headline figure
/// and on failures, of each target with the reference and with the next one in order of speed; and
/// how many are left out.
pub(super) fn chosen<'a>(versus: &Versus, claims: Vec<&'a Claim>) -> (Vec<&'a Claim>, usize) {
    if claims.len() <= ALL_SHOWN {
        return (claims, 0);
    }
    let order = by_speed(versus);
    let chosen: Vec<&Claim> = claims
        .iter()
        .filter(|claim: &&&Claim| {
            let mut neighbours = order.windows(2);
            (claim.about == versus.headline.name() || claim.about == FAILURES)
                && (claim.reference == versus.reference()
                    || neighbours.any(|two| {
                        two.contains(&&*claim.target) && two.contains(&&*claim.reference)
                    }))
        })
        .copied()
        .collect();
    let more = claims.len() - chosen.len();
    (chosen, more)
}

/// The compared targets, the one that adds least first.
fn by_speed(versus: &Versus) -> Vec<&str> {
    let mut names = versus.compared();
    names.sort_by(|a, b| median_added(versus, a).total_cmp(&median_added(versus, b)));
    names
}

fn median_added(versus: &Versus, name: &str) -> f64 {
    let reference = versus.reference();
    let found = versus.difference(name, reference, versus.headline, Kind::Added, "p50");
    found.and_then(|found| found.value_ns).unwrap_or(f64::INFINITY)
}

fn detectable(versus: &Versus) -> Option<String> {
    let (reference, figure) = (versus.reference(), versus.headline.title());
    let found = versus.detectable.iter().filter(|seen| seen.reference == reference);
    let parts: Vec<_> = found
        .filter_map(|seen| {
            let added = format::time(seen.added_ns? / 1e6);
            let failures = seen.one_failure_in.map_or_else(String::new, |one_in| {
                format!(", one failure in {}", format::digits(one_in))
            });
            Some(format!("{}: {added} of {figure}{failures}", seen.target))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("Could have been seen (80 %): {}.", parts.join("; ")))
}

/// How much of the headline differences may be the generator's own.
fn generator(versus: &Versus) -> Option<String> {
    let parts: Vec<_> = versus
        .headline_added()
        .filter_map(|found: &Difference| {
            Some(format!("{}: {}", found.target, format::time(found.generator_ns? / 1e6)))
        })
        .collect();
    let (figure, all) = (versus.headline.title(), parts.join("; "));
    (!parts.is_empty())
        .then(|| format!("Generator's own part of the added {figure}, at most: {all}."))
}

/// The tails where failures count as infinitely slow.
fn with_failures(versus: &Versus) -> impl Iterator<Item = String> {
    let found = versus.differences.iter().filter(|found| {
        (found.kind, found.figure) == (Kind::ShiftWithFailures, versus.headline)
            && found.quantile == "p99"
            && found.reference == versus.reference()
    });
    found.map(|found| {
        let (name, shift) = (&found.target, shift(found));
        format!("With failures as infinitely slow, the p99 shift of {name} is {shift}.")
    })
}

fn shift(found: &Difference) -> String {
    match found.measured() {
        Some((value, low, high)) => format::difference(value / 1e6, low / 1e6, high / 1e6),
        None => "not known: it may be infinite".to_owned(),
    }
}

fn verdicts(versus: &Versus) -> Vec<String> {
    let Some(verdicts) = &versus.verdicts else { return Vec::new() };
    let only = verdicts.differences.iter().filter(|f| f.only_target + f.only_reference > 0);
    let mut lines: Vec<_> = only
        .map(|found| {
            format!(
                "Only {} decided {} turns wrongly, only {} {} ({}).",
                found.target,
                format::count(found.only_target),
                found.reference,
                format::count(found.only_reference),
                format::p_value(found.p)
            )
        })
        .collect();
    if verdicts.different > 0 {
        lines.push(format!(
            "Targets judged {} turns differently: see versus.json, verdicts.",
            format::count(verdicts.different)
        ));
    }
    lines
}

/// The judgement of a threshold in a word, and what was judged.
pub(super) fn judged(threshold: &ThresholdResult) -> (&'static str, String) {
    let every = threshold.of_every_value().map(str::to_owned);
    let measured = every.unwrap_or_else(|| format::time_or_dash(threshold.measured));
    let what = format!("{} {}: {measured}", threshold.metric, threshold.expression);
    match &threshold.judgement {
        Judgement::Pass => ("PASS", what),
        Judgement::Fail => ("FAIL", what),
        Judgement::Inconclusive(why) => ("INCONCLUSIVE", format!("{what}; {why}")),
    }
}
