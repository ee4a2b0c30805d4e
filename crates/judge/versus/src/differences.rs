//! The differences between targets, by figure and percentile.

use plimsoll_stats::{Estimate, NoIntervalReason};

use crate::comparisons::{comparisons, control, figures};
use crate::facts::Facts;
use crate::figure::{Figure, QUANTILES};
use crate::lateness;
use crate::pairs::{Run, Two, failed};
use crate::result::{Difference, Kind};

/// From this share of pairs that only one side failed, percentiles are also given with failures as
/// infinitely slow.
const FAILURES_MATTER: f64 = 0.001;

/// All differences, in the order of reports.
pub(crate) fn differences(facts: &Facts, run: Run<'_>) -> Vec<Difference> {
    let all = control(facts).into_iter().chain(comparisons(facts));
    all.flat_map(|two| of_targets(facts, run, two)).collect()
}

fn of_targets(facts: &Facts, run: Run<'_>, two: Two) -> Vec<Difference> {
    let with_failures = failures_matter(run, two);
    let mut differences = Vec::new();
    for figure in figures(run, two) {
        let row = Row { facts, two, figure };
        let added = run.added(two, figure);
        let shift = run.shift(two, figure);
        for (name, q) in QUANTILES {
            let mut found = row.of(Kind::Added, name, added.count(), added.estimate(q));
            if name == "p50" {
                refuse_lateness(run, two, &mut found);
            }
            differences.push(found);
        }
        for (name, q) in QUANTILES {
            differences.push(row.of(Kind::Shift, name, shift.pairs(), shift.estimate(q)));
        }
        if with_failures && whole(figure) {
            let shift = run.shift_with_failures(two, figure);
            for (name, q) in QUANTILES {
                let found = row.of(Kind::ShiftWithFailures, name, shift.pairs(), shift.estimate(q));
                differences.push(found);
            }
        }
    }
    differences
}

/// A failure has no gaps: it can be infinitely slow in the times of the whole request alone.
const fn whole(figure: Figure) -> bool {
    matches!(figure, Figure::Ttft | Figure::ResponseTime | Figure::ServiceTime)
}

fn failures_matter(run: Run<'_>, two: Two) -> bool {
    let (mut discordant, mut pairs) = (0_u64, 0_u64);
    for (target, reference) in run.pairs(two) {
        pairs += 1;
        discordant += u64::from(failed(target) != failed(reference));
    }
    discordant as f64 > FAILURES_MATTER * pairs as f64
}

fn refuse_lateness(run: Run<'_>, two: Two, found: &mut Difference) {
    let Some((value, low, high)) = found.measured() else { return };
    if let Some(why) = lateness::refused(run, two, found.figure, (value, (high - low) / 2.0)) {
        *found = Difference {
            refused: Some(why),
            value_ns: None,
            low_ns: None,
            high_ns: None,
            p: None,
            ..found.clone()
        };
    }
}

/// What is the same for all differences of two targets in one figure.
struct Row<'a> {
    facts: &'a Facts,
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
        let name = |index: usize| self.facts.targets[index].name.clone();
        let empty = Difference {
            target: name(self.two.target),
            reference: name(self.two.reference),
            figure: self.figure,
            kind,
            quantile: quantile.to_owned(),
            pairs: pairs as u64,
            ..Difference::default()
        };
        match found {
            Ok(estimate) => Difference {
                value_ns: Some(estimate.value),
                low_ns: Some(estimate.interval.low),
                high_ns: Some(estimate.interval.high),
                effective_pairs: Some(estimate.effective),
                batches: Some(estimate.batches),
                degrees_of_freedom: Some(estimate.degrees_of_freedom),
                p: Some(estimate.p_zero),
                ..empty
            },
            Err(why) => Difference { refused: Some(why.words()), ..empty },
        }
    }
}
