//! Failures of only one of two targets.

use plimsoll_stats::sign_test::{Discordant, SignTest};

use crate::comparisons::comparisons;
use crate::facts::Facts;
use crate::pairs::{Run, Two, failed};
use crate::result::ErrorDifference;

/// Failures of any two targets.
pub(crate) fn errors(facts: &Facts, run: Run<'_>) -> Vec<ErrorDifference> {
    comparisons(facts).into_iter().map(|two| compare(facts, run, two)).collect()
}

fn compare(facts: &Facts, run: Run<'_>, two: Two) -> ErrorDifference {
    let mut batches: Vec<Vec<Discordant>> = run.batching.by_batch();
    let mut pairs = 0;
    for (stage, batch, (target, reference)) in run.both(two) {
        let (target, reference) = (failed(target), failed(reference));
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
