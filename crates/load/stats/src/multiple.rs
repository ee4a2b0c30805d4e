//! Several comparisons at once.
//!
//! Both functions take p values and give adjusted ones in the same order: a comparison holds at a
//! level if its adjusted value is below it. A p value that is not a number was not tested: it stays
//! so, and does not count.

use std::cmp::Ordering;

/// Adjusted so that the probability of even one false statement is at most the level, whatever the
/// comparisons have to do with each other (Holm, 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![f64::NAN; p.len()];
    let mut least = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        least = least.max(p[index] * (order.len() - rank) as f64).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// Adjusted so that among the statements at most a share of the level is false, on average
/// (Benjamini and Hochberg, 1995).
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![f64::NAN; p.len()];
    let mut most = 1.0_f64;
    for (rank, &index) in order.iter().enumerate().rev() {
        most = most.min(p[index] * order.len() as f64 / (rank + 1) as f64);
        adjusted[index] = most;
    }
    adjusted
}

/// The best and the worst possible rank of each of `count` things, from 1. `order` compares one
/// with another: `Less` is better, and `None` is a tie. Ties need not be transitive.
pub fn ranks(
    count: usize,
    order: impl Fn(usize, usize) -> Option<Ordering>,
) -> Vec<(usize, usize)> {
    let of = |one: usize| {
        let orders = (0..count).filter(|other| *other != one).map(|other| order(one, other));
        let orders: Vec<_> = orders.collect();
        (1 + number(&orders, Ordering::Greater), count - number(&orders, Ordering::Less))
    };
    (0..count).map(of).collect()
}

fn number(orders: &[Option<Ordering>], wanted: Ordering) -> usize {
    orders.iter().filter(|found| **found == Some(wanted)).count()
}

/// Indices of the numbers, from the smallest.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).filter(|&index| !p[index].is_nan()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let near = (found - expected).abs() < 1e-12 || (found.is_nan() && expected.is_nan());
            assert!(near, "{found} is not {expected}");
        }
    }

    /// The second is tied with both others, of which the first is better than the third.
    #[test]
    fn ties_need_not_be_transitive() {
        let order = |one: usize, other: usize| match (one, other) {
            (0, 2) => Some(Ordering::Less),
            (2, 0) => Some(Ordering::Greater),
            _ => None,
        };
        assert_eq!(ranks(3, order), [(1, 2), (1, 3), (2, 3)]);
        assert_eq!(ranks(1, order), [(1, 1)]);
    }

    /// By hand, and as R's `p.adjust(c(0.01, 0.04, 0.03, 0.005))` has them.
    #[test]
    fn adjusted_values_are_those_of_the_textbook() {
        assert_near(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        assert_near(&benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]), &[0.02, 0.04, 0.04, 0.02]);
        assert_near(&holm(&[0.5, 0.9]), &[1.0, 1.0]);
        assert_near(&benjamini_hochberg(&[0.5, 0.9]), &[0.9, 0.9]);
    }

    #[test]
    fn what_was_not_tested_does_not_count() {
        assert_near(&holm(&[0.02, f64::NAN, 0.03]), &[0.04, f64::NAN, 0.04]);
        assert_near(&benjamini_hochberg(&[f64::NAN, 0.02]), &[f64::NAN, 0.02]);
        assert_near(&holm(&[]), &[]);
    }
}
