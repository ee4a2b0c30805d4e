//! Properties of every sample, whatever its distribution.

use plimsoll_stats::shift::{BatchPair, Shift};
use plimsoll_stats::woodruff::Batched;
use proptest::prelude::*;

/// Batches of pairs with few different values, so that many are equal.
fn batches() -> impl Strategy<Value = Vec<Vec<(f64, f64)>>> {
    let value = || (0_i32..30).prop_map(f64::from);
    let batch = proptest::collection::vec((value(), value()), 5..20);
    proptest::collection::vec(batch, 10..30)
}

fn shift(batches: &[Vec<(f64, f64)>], by: f64) -> Shift {
    Shift::new(vec![
        batches
            .iter()
            .map(|pairs: &Vec<(f64, f64)>| BatchPair {
                target: pairs.iter().map(|pair| pair.0 + by).collect(),
                reference: pairs.iter().map(|pair| pair.1).collect(),
            })
            .collect(),
    ])
}

fn added(batches: &[Vec<(f64, f64)>], by: f64) -> Batched {
    Batched::new(vec![
        batches
            .iter()
            .map(|pairs: &Vec<(f64, f64)>| pairs.iter().map(|pair| pair.0 + by - pair.1).collect())
            .collect(),
    ])
}

proptest! {
    #[test]
    fn an_interval_contains_its_estimate(batches in batches(), q in 0.2..0.8) {
        for found in [shift(&batches, 0.0).estimate(q), added(&batches, 0.0).estimate(q)] {
            let Ok(found) = found else { continue };
            prop_assert!(found.interval.contains(found.value), "{:?}", found);
            prop_assert!((0.0..=1.0).contains(&found.p_zero), "{:?}", found);
        }
    }

    #[test]
    fn what_is_added_to_every_value_is_added_to_the_estimate_and_its_interval(
        batches in batches(),
        by in -50_i32..50,
        q in 0.2..0.8,
    ) {
        let by = f64::from(by);
        let moved = |before: plimsoll_stats::Estimate, after: plimsoll_stats::Estimate| {
            let parts = [
                (before.value, after.value),
                (before.interval.low, after.interval.low),
                (before.interval.high, after.interval.high),
            ];
            parts.iter().all(|(before, after)| (after - before - by).abs() < 1e-6)
        };
        if let (Ok(before), Ok(after)) = (shift(&batches, 0.0).estimate(q), shift(&batches, by).estimate(q)) {
            prop_assert!(moved(before, after), "{:?} {:?}", before, after);
        }
        if let (Ok(before), Ok(after)) = (added(&batches, 0.0).estimate(q), added(&batches, by).estimate(q)) {
            prop_assert!(moved(before, after), "{:?} {:?}", before, after);
        }
    }

    #[test]
    fn exchanging_the_targets_turns_the_sign(batches in batches()) {
        let exchanged: Vec<Vec<(f64, f64)>> =
            batches.iter().map(|batch| batch.iter().map(|&(a, b)| (b, a)).collect()).collect();
        let both = (shift(&batches, 0.0).estimate(0.5), shift(&exchanged, 0.0).estimate(0.5));
        if let (Ok(one), Ok(other)) = both {
            prop_assert!((one.value + other.value).abs() < 1e-9);
            prop_assert!((one.p_zero - other.p_zero).abs() < 1e-6, "{:?} {:?}", one, other);
        }
    }
}
