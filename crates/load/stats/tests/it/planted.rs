//! J2 and J3: a planted difference is found, and lies in the interval.

use plimsoll_stats::Estimate;

use crate::noise::Noise;

const SEED: u64 = 1_302;
const RUNS: u64 = 200;

/// Counts of runs: difference found, truth in the interval.
fn count(truth: f64, estimate: impl Fn(u64) -> Estimate) -> (u64, u64, Vec<f64>) {
    let (mut found, mut covered, mut values) = (0, 0, Vec::new());
    for run in 0..RUNS {
        let estimate = estimate(run);
        // The interval and the p value say the same.
        let excluded = !estimate.interval.contains(0.0);
        assert!(excluded == (estimate.p_zero < 0.05), "{estimate:?}");
        found += u64::from(excluded && estimate.value.signum() == truth.signum());
        covered += u64::from(estimate.interval.contains(truth));
        values.push(estimate.value);
    }
    println!("{truth}: found in {found}, covered in {covered} of {RUNS}");
    (found, covered, values)
}

#[test]
fn fifty_microseconds_are_found_among_6000_pairs_with_common_draws() {
    let (found, covered, values) = count(0.05, |run| {
        let pairs = Noise::CommonDraws.pairs(SEED, run, 6_000).planted(|time| time + 0.05);
        pairs.added().estimate(0.5).unwrap()
    });
    assert!(found >= 190, "{found}");
    assert!(covered >= 183, "{covered}");
    assert!(values.iter().all(|value| (value - 0.05).abs() < 0.005), "{values:?}");
}

#[test]
fn two_percent_are_found_among_24000_pairs_with_own_draws() {
    let (found, covered, _) = count(0.02 * 20.0, |run| {
        let pairs = Noise::OwnDraws.pairs(SEED, run, 24_000).planted(|time| time * 1.02);
        pairs.shift().estimate(0.5).unwrap()
    });
    assert!(found >= 180, "{found}");
    assert!(covered >= 183, "{covered}");
}
