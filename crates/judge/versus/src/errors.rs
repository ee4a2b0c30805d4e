//! Failures that only one of two targets had.

use plimsoll_measure::{Outcome, PairedTurn};
use plimsoll_stats::sign_test::{Discordant, SignTest};

use crate::comparisons::comparisons;
use crate::facts::Facts;
use crate::pairs::{Run, Two, failed};
use crate::result::{ErrorDifference, Lost};

/// Failures of each two targets.
pub(crate) fn errors(facts: &Facts, run: Run<'_>) -> Vec<ErrorDifference> {
    comparisons(facts)
        .into_iter()
        .map(|two| compare(facts, run, two, |turn| Some(failed(turn))))
        .collect()
}

/// How often only one of two targets is `affected`, which may not be known of a turn.
pub(crate) fn compare(
    facts: &Facts,
    run: Run<'_>,
    two: Two,
    affected: impl Fn(&PairedTurn) -> Option<bool>,
) -> ErrorDifference {
    let mut batches: Vec<Vec<Discordant>> = run.batching.by_batch();
    let mut pairs = 0;
    for (stage, batch, (target, reference)) in run.both(two) {
        let Some((target, reference)) = affected(target).zip(affected(reference)) else { continue };
        pairs += 1;
        let batch = &mut batches[stage][batch];
        batch.target += u64::from(target && !reference);
        batch.reference += u64::from(reference && !target);
    }
    let batches: Vec<Discordant> = batches.into_iter().flatten().collect();
    let test = SignTest::new(&batches, run.batching.looks);
    ErrorDifference {
        target: facts.targets[two.target].name.clone(),
        reference: facts.targets[two.reference].name.clone(),
        pairs,
        only_target: test.pairs.target,
        only_reference: test.pairs.reference,
        p: test.p,
        by_batch: test.by_batch,
    }
}

/// Turns that a target was given and did not complete, nor refuse as expected, for each that has
/// some.
pub(crate) fn lost(facts: &Facts, run: Run<'_>) -> Vec<Lost> {
    let lost = facts.targets.iter().enumerate().map(
        |(index, target): (usize, &crate::facts::TargetFacts)| {
            let all = run.turns(index).count() as u64;
            let pairs = run
                .turns(index)
                .filter(|turn: &&PairedTurn| {
                    turn.outcome != Outcome::Completed && turn.as_expected() != Some(true)
                })
                .count() as u64;
            let share = pairs as f64 / all.max(1) as f64;
            Lost { target: target.name.clone(), pairs, share }
        },
    );
    lost.filter(|lost| lost.pairs > 0).collect()
}
