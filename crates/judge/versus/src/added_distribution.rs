//! How what is added is distributed over the pairs, for a drawing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparisons::{comparisons, control};
use crate::facts::Facts;
use crate::figure::Figure;
use crate::pairs::{Run, Two, value};

/// Bins of each doubling.
const BINS: f64 = 8.0;
/// Below this, bins are about equally wide in time; beyond it, in its logarithm. In nanoseconds.
const KNEE_NS: f64 = 1_000.0;

/// What a target adds to the reference in the headline figure, by pair: a histogram. No pair is
/// left out, and nothing is judged by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddedDistribution {
    /// The target.
    pub target: String,
    /// What it is compared with.
    pub reference: String,
    /// Pairs in all bins.
    pub pairs: u64,
    /// Pairs of bin and count, ascending; bins without a pair are left out. Bin `b` begins at
    /// `sign(b) * 1000 * (2^(|b| / 8) - 1)` ns and ends where bin `b + 1` begins: it is about 90 ns
    /// wide around 0, and far from it a twelfth of the time.
    pub bins: Vec<(i32, u64)>,
}

/// Where a bin of [`AddedDistribution::bins`] begins, in nanoseconds.
pub fn added_bin_start_ns(bin: i32) -> f64 {
    let size = KNEE_NS * ((f64::from(bin.abs()) / BINS).exp2() - 1.0);
    f64::from(bin.signum()) * size
}

/// The bin of a difference in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm is small")]
fn bin(nanos: f64) -> i32 {
    let place = (1.0 + nanos.abs() / KNEE_NS).log2() * BINS;
    (if nanos < 0.0 { -place } else { place }).floor() as i32
}

/// One for the control and for each target that is compared with the reference, if they have pairs.
pub(crate) fn distributions(
    facts: &Facts,
    run: Run<'_>,
    headline: Figure,
) -> Vec<AddedDistribution> {
    let all = control(facts).into_iter().chain(comparisons(facts));
    let to_reference = all.filter(|two| two.reference == facts.reference());
    let found = to_reference.map(|two| distribution(facts, run, two, headline));
    found.filter(|found| found.pairs > 0).collect()
}

fn distribution(facts: &Facts, run: Run<'_>, two: Two, headline: Figure) -> AddedDistribution {
    let mut bins = BTreeMap::new();
    for (target, reference) in run.pairs(two) {
        let added = value(target, headline).zip(value(reference, headline));
        if let Some((target, reference)) = added {
            *bins.entry(bin(target - reference)).or_default() += 1;
        }
    }
    of_bins(facts.name(two.target).to_owned(), facts.name(two.reference).to_owned(), bins)
}

fn of_bins(target: String, reference: String, bins: BTreeMap<i32, u64>) -> AddedDistribution {
    let pairs = bins.values().sum();
    AddedDistribution { target, reference, pairs, bins: bins.into_iter().collect() }
}

/// Those of several rounds: counts are added up.
pub(crate) fn of_rounds<'a>(
    rounds: impl Iterator<Item = &'a AddedDistribution>,
) -> Vec<AddedDistribution> {
    let mut all: Vec<AddedDistribution> = Vec::new();
    for found in rounds {
        match all.iter_mut().find(|known: &&mut AddedDistribution| {
            (&known.target, &known.reference) == (&found.target, &found.reference)
        }) {
            Some(known) => {
                let mut bins: BTreeMap<i32, u64> = known.bins.iter().copied().collect();
                for (bin, count) in &found.bins {
                    *bins.entry(*bin).or_default() += count;
                }
                *known = of_bins(found.target.clone(), found.reference.clone(), bins);
            }
            None => all.push(found.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_lies_in_its_bin_whatever_its_sign() {
        for nanos in [0.0, 1.0, 89.0, 91.0, 1_000.0, 143_210.0, 5e6, 3.2e9, 1e12] {
            for signed in [nanos, -nanos] {
                let found = bin(signed);
                let (low, high) = (added_bin_start_ns(found), added_bin_start_ns(found + 1));
                let slack = nanos * 1e-9;
                assert!(low - slack <= signed && signed <= high + slack, "{signed}: {low} {high}");
            }
        }
    }

    /// By hand: 2^(8/8) - 1 = 1, 2^(16/8) - 1 = 3.
    #[test]
    fn bins_begin_where_they_are_said_to() {
        for (bin, nanos) in [(0, 0.0), (8, 1_000.0), (16, 3_000.0), (-16, -3_000.0)] {
            assert!((added_bin_start_ns(bin) - nanos).abs() < 1e-9, "{bin}");
        }
    }

    #[test]
    fn rounds_are_added_up() {
        let round = |bins: &[(i32, u64)]| {
            of_bins("a".to_owned(), "b".to_owned(), bins.iter().copied().collect())
        };
        let all = of_rounds([round(&[(-3, 1), (5, 2)]), round(&[(5, 40), (6, 1)])].iter());
        assert_eq!((all.len(), all[0].pairs), (1, 44));
        assert_eq!(all[0].bins, [(-3, 1), (5, 42), (6, 1)]);
    }
}
