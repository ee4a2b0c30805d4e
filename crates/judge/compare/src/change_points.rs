//! Change points of a series: E-divisive means (Matteson and James, arXiv 1306.4933) find where a
//! series may change, and a t-test decides whether it does, so that the answer does not depend on
//! random permutations (Fleming and others, arXiv 2301.03034).

use std::ops::Range;

use plimsoll_stats::runs::Change;
use plimsoll_stats::student_t::two_sided_p;

/// Runs from which on a history is searched.
pub const FEWEST_RUNS: usize = 20;
/// A change is one whose two sides differ with this probability by chance.
const P: f64 = 0.001;
/// Values on each side of a change at least.
const FEWEST_BESIDE: usize = 3;
/// The longest series that is searched: the time grows with the square of the length.
const LONGEST: usize = 600;

/// A change in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Index of the first value after it.
    pub index: usize,
    /// Mean of the stretch after it less that of the stretch before it.
    pub change: f64,
    /// Two-sided p value of the t-test between the two stretches.
    pub p: f64,
}

/// The changes of a series, in its order; of a long one, of its end.
pub fn find(values: &[f64]) -> Vec<Found> {
    let skipped = values.len().saturating_sub(LONGEST);
    let values = &values[skipped..];
    let mut splits = Vec::new();
    divide(values, 0, &mut splits);
    splits.sort_unstable();
    prune(values, &mut splits);
    let found = (0..splits.len()).filter_map(|at| test(values, &splits, at));
    found.map(|found| Found { index: found.index + skipped, ..found }).collect()
}

/// Splits a stretch where it differs most, and each part again.
fn divide(values: &[f64], offset: usize, splits: &mut Vec<usize>) {
    let Some((split, end)) = best_split(values) else { return };
    if !differ(&values[..split], &values[split..end]) {
        return;
    }
    splits.push(offset + split);
    divide(&values[..split], offset, splits);
    divide(&values[split..], offset + split, splits);
}

/// Takes out, one after the other, what is no change any more between its neighbours.
fn prune(values: &[f64], splits: &mut Vec<usize>) {
    loop {
        let tested =
            (0..splits.len()).map(|at| (test(values, splits, at).map_or(1.0, |found| found.p), at));
        let weakest = tested.max_by(|a, b| a.0.total_cmp(&b.0));
        match weakest {
            Some((p, at)) if p >= P => drop(splits.remove(at)),
            _ => return,
        }
    }
}

/// The t-test between the stretches on both sides of a split.
fn test(values: &[f64], splits: &[usize], at: usize) -> Option<Found> {
    let index = *splits.get(at)?;
    let start = at.checked_sub(1).map_or(0, |before| splits[before]);
    let end = splits.get(at + 1).copied().unwrap_or(values.len());
    let change = Change::between(&values[start..index], &values[index..end], None)?;
    let p = two_sided_p(change.estimate / change.standard_error, change.degrees_of_freedom);
    Some(Found { index, change: change.estimate, p })
}

fn differ(before: &[f64], after: &[f64]) -> bool {
    let change = Change::between(before, after, None);
    change.is_some_and(|change| {
        two_sided_p(change.estimate / change.standard_error, change.degrees_of_freedom) < P
    })
}

/// Where the stretch before an index and a stretch after it differ most by the energy distance with
/// exponent 1: the index, and the end of the second stretch.
fn best_split(values: &[f64]) -> Option<(usize, usize)> {
    let distances = Distances::of(values);
    let mut best: Option<(f64, (usize, usize))> = None;
    for split in FEWEST_BESIDE..=values.len().checked_sub(FEWEST_BESIDE)? {
        for end in split + FEWEST_BESIDE..=values.len() {
            let energy = distances.energy(split, end);
            if best.is_none_or(|(most, _)| energy > most) {
                best = Some((energy, (split, end)));
            }
        }
    }
    best.map(|(_, place)| place)
}

/// Sums of the distances between values: of all pairs from the first `i` and the first `j`.
struct Distances {
    sums: Vec<f64>,
    width: usize,
}

impl Distances {
    fn of(values: &[f64]) -> Self {
        let width = values.len() + 1;
        let mut sums = vec![0.0; width * width];
        for (i, one) in values.iter().enumerate() {
            for (j, other) in values.iter().enumerate() {
                sums[(i + 1) * width + j + 1] =
                    (one - other).abs() + sums[i * width + j + 1] + sums[(i + 1) * width + j]
                        - sums[i * width + j];
            }
        }
        Self { sums, width }
    }

    /// The sum over all pairs of a value of `a..b` and one of `c..d`.
    fn between(&self, first: &Range<usize>, second: &Range<usize>) -> f64 {
        let sum = |i: usize, j: usize| self.sums[i * self.width + j];
        sum(first.end, second.end) - sum(first.start, second.end) - sum(first.end, second.start)
            + sum(first.start, second.start)
    }

    /// `mn/(m+n)` times the energy distance of the values before `split` and from there to `end`.
    fn energy(&self, split: usize, end: usize) -> f64 {
        let (left, right) = (&(0..split), &(split..end));
        let (m, n) = (split as f64, (end - split) as f64);
        let across = 2.0 * self.between(left, right) / (m * n);
        // Each pair within a stretch is in the sum twice.
        let within = self.between(left, left) / (m * (m - 1.0))
            + self.between(right, right) / (n * (n - 1.0));
        m * n / (m + n) * (across - within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same every time: `SplitMix64`, and the sum of 12 uniform ones.
    struct Noise(u64);

    impl Noise {
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }

        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn changes_of_three_standard_deviations_are_found_where_they_are() {
        let mut noise = Noise(7);
        let mut right = 0;
        for _ in 0..50 {
            let level = |index: usize| match index {
                0..15 => 0.0,
                15..30 => 3.0,
                _ => 1.0,
            };
            let values: Vec<_> = (0..40).map(|index| level(index) + noise.normal()).collect();
            let found = find(&values);
            let near = |index: usize| found.iter().any(|found| found.index.abs_diff(index) <= 1);
            right += usize::from(found.len() == 2 && near(15) && near(30));
        }
        // The second is of two standard deviations only, over ten values.
        assert!(right >= 25, "{right} of 50");
    }

    #[test]
    fn a_series_without_changes_has_none() {
        let mut noise = Noise(11);
        let alarms = (0..200).filter(|_| {
            let values: Vec<_> = (0..30).map(|_| noise.normal()).collect();
            !find(&values).is_empty()
        });
        let alarms = alarms.count();
        assert!(alarms <= 10, "{alarms} of 200");
    }

    #[test]
    fn the_size_of_a_change_is_the_difference_of_the_means() {
        let values: Vec<_> = (0..24)
            .map(|index| f64::from(index % 2) + if index < 12 { 0.0 } else { 10.0 })
            .collect();
        let found = find(&values);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].index, 12);
        assert!((found[0].change - 10.0).abs() < 1e-12 && found[0].p < 1e-9);
    }

    /// By the definition, pair by pair.
    #[test]
    fn the_energy_is_that_of_all_pairs() {
        let values = [1.0, 4.0, 2.0, 8.0, 9.0, 7.5, 3.0];
        let distances = Distances::of(&values);
        let mean = |pairs: Vec<(f64, f64)>| {
            pairs.iter().map(|(a, b)| (a - b).abs()).sum::<f64>() / pairs.len() as f64
        };
        let cross = |a: &[f64], b: &[f64]| {
            a.iter().flat_map(|x| b.iter().map(move |y| (*x, *y))).collect::<Vec<_>>()
        };
        let within = |a: &[f64]| {
            let pair = |i: usize, j: usize| (a[i], a[j]);
            (0..a.len()).flat_map(|i| (i + 1..a.len()).map(move |j| pair(i, j))).collect::<Vec<_>>()
        };
        let (left, right) = (&values[..3], &values[3..6]);
        let by_hand =
            9.0 / 6.0 * (2.0 * mean(cross(left, right)) - mean(within(left)) - mean(within(right)));
        assert!((distances.energy(3, 6) - by_hand).abs() < 1e-12);
    }

    #[test]
    fn short_series_and_constant_ones_have_no_change() {
        assert!(find(&[]).is_empty() && find(&[1.0; 5]).is_empty() && find(&[2.0; 30]).is_empty());
    }
}
