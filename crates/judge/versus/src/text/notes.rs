//! What may be said, what could have been seen, and what a reader must know.

use plimsoll_metrics::{Judgement, ThresholdResult};
use plimsoll_report::format;

use super::{Page, times};
use crate::claims::FAILURES;
use crate::outage;
use crate::result::{Claim, Difference, Kind, ScenarioDifference, Versus};

/// So many sentences are shown without a choice.
const ALL_SHOWN: usize = 10;

/// Scenarios are pointed out below this adjusted p value.
const WORTH_A_LOOK: f64 = 0.05;

pub(super) fn write(page: &mut Page, versus: &Versus) {
    page.line("");
    claims(page, versus);
    detectable(page, versus);
    generator(page, versus);
    with_failures(page, versus);
    scenarios(page, versus);
    verdicts(page, versus);
    thresholds(page, versus);
    for sentence in times::other_signs(versus) {
        page.paragraph(&format!("{sentence}."));
    }
    for warning in &versus.warnings {
        page.paragraph(&format!("WARNING: {warning}"));
    }
    for why in &versus.invalid {
        page.paragraph(&format!("INVALID: {why}"));
    }
}

fn claims(page: &mut Page, versus: &Versus) {
    if !versus.invalid.is_empty() {
        page.paragraph("Nothing is said of the targets: the comparison is INVALID.");
        return;
    }
    if versus.claims.is_empty() {
        page.paragraph("No difference could be tested.");
        return;
    }
    page.paragraph(&scope(versus));
    let (hold, open): (Vec<&Claim>, Vec<&Claim>) = versus.claims.iter().partition(|c| c.holds);
    if hold.is_empty() {
        page.paragraph(&format!("- {}", none_proven(versus)));
    }
    let (shown, more) = chosen(versus, hold);
    for claim in shown {
        page.paragraph(&format!("- {}", claim.text));
    }
    if more > 0 {
        page.paragraph(&format!("- and {more} more: see versus.json, claims"));
    }
    let (shown, more) = chosen(versus, open);
    if !shown.is_empty() {
        let open: Vec<_> = shown.iter().map(|claim| &*claim.text).collect();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        page.paragraph(&format!("Open: {}{more}.", open.join("; ")));
    }
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
fn chosen<'a>(versus: &Versus, claims: Vec<&'a Claim>) -> (Vec<&'a Claim>, usize) {
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

fn detectable(page: &mut Page, versus: &Versus) {
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
    if !parts.is_empty() {
        page.paragraph(&format!("Could have been seen (80 %): {}.", parts.join("; ")));
    }
}

/// How much of the headline differences may be the generator's own.
fn generator(page: &mut Page, versus: &Versus) {
    let parts: Vec<_> = versus
        .headline_added()
        .filter_map(|found: &Difference| {
            Some(format!("{}: {}", found.target, format::time(found.generator_ns? / 1e6)))
        })
        .collect();
    if !parts.is_empty() {
        let figure = versus.headline.title();
        let parts = parts.join("; ");
        page.paragraph(&format!("Generator's own part of the added {figure}, at most: {parts}."));
    }
}

/// The tails where failures count as infinitely slow.
fn with_failures(page: &mut Page, versus: &Versus) {
    let found = versus.differences.iter().filter(|found| {
        (found.kind, found.figure) == (Kind::ShiftWithFailures, versus.headline)
            && found.quantile == "p99"
            && found.reference == versus.reference()
    });
    for found in found {
        page.paragraph(&format!(
            "With failures as infinitely slow, the p99 shift of {} is {}.",
            found.target,
            shift(found)
        ));
    }
}

fn shift(found: &Difference) -> String {
    match found.measured() {
        Some((value, low, high)) => format::difference(value / 1e6, low / 1e6, high / 1e6),
        None => "not known: it may be infinite".to_owned(),
    }
}

/// Scenarios in which a target adds more or less than in all together.
fn scenarios(page: &mut Page, versus: &Versus) {
    const SHOWN: usize = 5;
    let mut found: Vec<_> = versus
        .scenarios
        .iter()
        .filter(|found: &&ScenarioDifference| found.q.is_some_and(|q| q < WORTH_A_LOOK))
        .collect();
    if found.is_empty() {
        return;
    }
    found.sort_by(|a, b| a.q.unwrap_or(1.0).total_cmp(&b.q.unwrap_or(1.0)));
    let parts: Vec<_> = found
        .iter()
        .take(SHOWN)
        .filter_map(|found| {
            let (value, low, high) = (found.value_ns?, found.low_ns?, found.high_ns?);
            let added = format::difference(value / 1e6, low / 1e6, high / 1e6);
            Some(format!("{} in `{}` {added}", found.target, found.scenario))
        })
        .collect();
    page.paragraph(&format!(
        "Worth a look: {}; {} of {} scenarios and targets differ from the whole.",
        parts.join("; "),
        found.len(),
        versus.scenarios.len()
    ));
}

fn verdicts(page: &mut Page, versus: &Versus) {
    let Some(verdicts) = &versus.verdicts else { return };
    for found in verdicts.differences.iter().filter(|f| f.only_target + f.only_reference > 0) {
        page.paragraph(&format!(
            "Only {} decided {} turns wrongly, only {} {} ({}).",
            found.target,
            format::count(found.only_target),
            found.reference,
            format::count(found.only_reference),
            format::p_value(found.p)
        ));
    }
    if verdicts.different > 0 {
        page.paragraph(&format!(
            "Targets judged {} turns differently: see versus.json, verdicts.",
            format::count(verdicts.different)
        ));
    }
}

fn thresholds(page: &mut Page, versus: &Versus) {
    for threshold in &versus.thresholds {
        page.paragraph(&threshold_line(threshold));
    }
    for why in outage::sentences(versus).iter().chain(&versus.worse_than_margin) {
        page.paragraph(&format!("FAIL: {why}"));
    }
    for why in &versus.margin_unknown {
        page.paragraph(&format!("INCONCLUSIVE: {why}"));
    }
}

fn threshold_line(threshold: &ThresholdResult) -> String {
    let (word, what) = judged(threshold);
    format!("{word}: {what}")
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
