//! How targets differ beyond what is compared.

use plimsoll_report::format;

use crate::facts::Facts;
use crate::pairs::{Run, Two};
use crate::result::TargetResult;

/// Token counts of the same turn that differ in a smaller share of the pairs are not named.
const TOKENS_DIFFER: f64 = 0.01;
/// Shares of used connections that differ by less are not named.
const REUSED_DIFFER: f64 = 0.01;

/// Sentences on targets that were not given, or did not do, the same work.
pub(crate) fn unlike(facts: &Facts, run: Run<'_>) -> Vec<String> {
    let stated = facts
        .targets
        .iter()
        .flat_map(|target| target.differs.iter().map(move |how| format!("{}: {how}", target.name)));
    let reference = facts.reference();
    let counted = facts.compared().into_iter().flat_map(|target| {
        let two = Two { target, reference };
        let name = &facts.targets[target].name;
        let input = differing(run, two, |turn| turn.input_tokens).map(|share| ("input", share));
        let output = differing(run, two, |turn| turn.output_tokens).map(|share| ("output", share));
        input.into_iter().chain(output).map(move |(kind, share)| {
            format!("{name} counts other {kind} tokens in {} of the pairs", format::percent(share))
        })
    });
    stated.chain(counted).collect()
}

/// The share of pairs whose token counts are known and differ, if it is notable.
fn differing(
    run: Run<'_>,
    two: Two,
    tokens: impl Fn(&plimsoll_measure::PairedTurn) -> u32,
) -> Option<f64> {
    let (mut differ, mut known) = (0_u64, 0_u64);
    for (target, reference) in run.pairs(two) {
        let (target, reference) = (tokens(target), tokens(reference));
        if target > 0 && reference > 0 {
            known += 1;
            differ += u64::from(target != reference);
        }
    }
    let share = differ as f64 / known.max(1) as f64;
    (share > TOKENS_DIFFER).then_some(share)
}

/// A warning where targets used their connections again in different shares.
pub(crate) fn connections(targets: &[TargetResult]) -> Option<String> {
    let reused = targets.iter().filter_map(|target| target.reused);
    let (least, most) = (reused.clone().reduce(f64::min)?, reused.reduce(f64::max)?);
    let shares: Vec<_> = targets
        .iter()
        .filter_map(|target| Some(format!("{} {}", target.name, format::share(target.reused?))))
        .collect();
    (most - least > REUSED_DIFFER).then(|| {
        format!(
            "connections were used again in different shares ({}): new ones take longer",
            shares.join(", ")
        )
    })
}
