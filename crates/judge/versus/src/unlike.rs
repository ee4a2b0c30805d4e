//! How targets differ beyond what is compared.

use plimsoll_report::format;

use crate::facts::Facts;
use crate::pairs::{Run, Two};
use crate::result::TargetResult;

/// Token counts of the same turn that differ in a smaller share of the pairs are not named.
const TOKENS_DIFFER: f64 = 0.01;
/// Shares of used connections that differ by less are not named.
const REUSED_DIFFER: f64 = 0.01;
/// Nor are those that differ by fewer standard errors of two shares: chance does that.
const STANDARD_ERRORS: f64 = 3.0;

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
    let reused: Vec<_> = targets.iter().filter(|target| target.reused.is_some()).collect();
    let by_share = |a: &&&TargetResult, b: &&&TargetResult| {
        a.reused.unwrap_or_default().total_cmp(&b.reused.unwrap_or_default())
    };
    let (least, most) = (reused.iter().min_by(by_share)?, reused.iter().max_by(by_share)?);
    let shares: Vec<_> = reused
        .iter()
        .filter_map(|target| Some(format!("{} {}", target.name, format::share(target.reused?))))
        .collect();
    differ(least, most).then(|| {
        format!(
            "connections were used again in different shares ({}): new ones take longer",
            shares.join(", ")
        )
    })
}

/// Whether two shares of turns over used connections differ, by more than chance.
fn differ(least: &TargetResult, most: &TargetResult) -> bool {
    let (Some(low), Some(high)) = (least.reused, most.reused) else { return false };
    let error = (variance(low, least.turns) + variance(high, most.turns)).sqrt();
    high - low > REUSED_DIFFER.max(STANDARD_ERRORS * error)
}

/// The variance of a share of so many turns, with a success and a failure more, so that a share of
/// one turn is not certain (Agresti and Caffo, 2000).
fn variance(share: f64, turns: u64) -> f64 {
    let turns = turns as f64;
    let share = (share * turns + 1.0) / (turns + 2.0);
    share * (1.0 - share) / (turns + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, turns: u64, reused: f64) -> TargetResult {
        TargetResult {
            name: name.to_owned(),
            turns,
            reused: Some(reused),
            ..TargetResult::default()
        }
    }

    #[test]
    fn shares_that_chance_explains_are_not_named() {
        // 17 of 21 and 16 of 20: one connection more or less.
        assert_eq!(connections(&[target("a", 21, 0.809), target("b", 20, 0.8)]), None);
        assert_eq!(connections(&[target("a", 1, 1.0), target("b", 1, 0.0)]), None);
        assert_eq!(connections(&[target("a", 60, 0.9), target("b", 60, 0.8)]), None);
        // 100 of 1,000 less: the standard error is 1.6 %.
        let said = connections(&[target("a", 1_000, 0.9), target("b", 1_000, 0.8)]).unwrap();
        assert!(said.contains("(a 90.00%, b 80.00%)"), "{said}");
        assert!(connections(&[target("a", 1_000, 1.0), target("b", 1_000, 0.0)]).is_some());
    }
}
