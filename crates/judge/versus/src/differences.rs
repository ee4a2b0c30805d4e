//! Computes the differences between targets, by figure and percentile.

use plimsoll_stats::sign_test::{Discordant, SignTest};
use plimsoll_stats::{Estimate, NoIntervalReason};

use crate::comparisons::{comparisons, control, figures, whole_time};
use crate::facts::Facts;
use crate::figure::{Figure, QUANTILES};
use crate::generator::WithoutGenerator;
use crate::outage;
use crate::pairs::{Run, Two, failed};
use crate::result::{Difference, ErrorDifference, Kind};

/// All differences in the report's order: every target against the reference in every figure, then
/// any two compared targets in the figures that are tested.
pub(crate) fn differences(facts: &Facts, run: Run<'_>, headline: Figure) -> Vec<Difference> {
    let said = [headline, whole_time(facts)];
    let reference = facts.reference();
    let all = control(facts).into_iter().chain(comparisons(facts));
    all.flat_map(|two| {
        let mut figures = figures(run, two);
        figures.retain(|figure| two.reference == reference || said.contains(figure));
        of_targets(facts, run, two, &figures)
    })
    .collect()
}

fn of_targets(facts: &Facts, run: Run<'_>, two: Two, figures: &[Figure]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for &figure in figures {
        let row = Row { facts, run, two, figure };
        let without_generator = WithoutGenerator::of(run, two, figure);
        let added = run.added(two, figure);
        let shift = run.shift(two, figure);
        let added = QUANTILES
            .map(|(name, q)| (q, row.of(Kind::Added, name, added.count(), added.estimate(q))));
        let shift = QUANTILES
            .map(|(name, q)| (q, row.of(Kind::Shift, name, shift.pairs(), shift.estimate(q))));
        for (q, mut found) in added.into_iter().chain(shift) {
            if let Some(without_generator) = &without_generator {
                without_generator.limit(q, &mut found);
            }
            differences.push(found);
        }
    }
    differences
}

/// Rounds to whole nanoseconds, the resolution of the measurement, without negative zero.
fn whole(nanos: f64) -> f64 {
    nanos.round() + 0.0
}

/// Attributes shared by all differences of two targets in one figure.
struct Row<'a> {
    facts: &'a Facts,
    run: Run<'a>,
    two: Two,
    figure: Figure,
}

impl Row<'_> {
    fn of(
        &self,
        kind: Kind,
        quantile: &str,
        pairs: usize,
        found: Result<Estimate, NoIntervalReason>,
    ) -> Difference {
        let empty = Difference {
            target: self.facts.name(self.two.target).to_owned(),
            reference: self.facts.name(self.two.reference).to_owned(),
            figure: self.figure,
            kind,
            quantile: quantile.to_owned(),
            pairs: pairs as u64,
            ..Difference::default()
        };
        match found {
            Ok(estimate) => Difference {
                value_ns: Some(whole(estimate.value)),
                low_ns: Some(whole(estimate.interval.low)),
                high_ns: Some(whole(estimate.interval.high)),
                effective_pairs: Some(estimate.effective),
                batches: Some(estimate.batches),
                degrees_of_freedom: Some(estimate.degrees_of_freedom),
                // Equal targets have a median difference of zero, but other percentiles of the
                // differences are not zero.
                p: Difference::is_zero_for_equals(kind, quantile).then_some(estimate.p_zero),
                ..empty
            },
            Err(why) => Difference { refused: Some(self.why_none(why)), ..empty },
        }
    }

    /// The reason for a missing interval. An outage explains it better than a small sample.
    fn why_none(&self, why: NoIntervalReason) -> String {
        [self.two.target, self.two.reference]
            .into_iter()
            .find_map(|target| outage::too_few(self.facts, self.run, target))
            .unwrap_or_else(|| self.run.words(why))
    }
}

// Failures of only one of two targets.

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
