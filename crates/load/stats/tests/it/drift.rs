//! J8: a provider that drifts by 30 % does not make equal targets differ if they are loaded in
//! turn, request by request; loaded one after the other they differ in most runs.

use plimsoll_measure::{Rng, Seed};

use crate::noise::Pairs;

const SEED: u64 = 1_308;
const RUNS: u64 = 200;
const PAIRS: usize = 6_000;
/// Pairs of a minute, in which the provider goes up and down once.
const PERIOD: f64 = 6_000.0;

/// From 0.7 to 1.3 times its time within 30 s, and back.
fn drift(pair: usize, phase: f64) -> f64 {
    let position = (pair as f64 / PERIOD + phase).fract();
    1.0 + 0.3 * (1.0 - 4.0 * (position - 0.5).abs())
}

fn times(rng: &mut Rng, phase: f64) -> Vec<f64> {
    (0..PAIRS).map(|pair| drift(pair, phase) * 20.0 * (0.35 * rng.normal()).exp()).collect()
}

/// Median, and its standard error by the textbook: order statistics of independent values.
fn textbook(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let (half, step) = (values.len() / 2, (values.len() as f64).sqrt() / 2.0);
    #[expect(clippy::cast_possible_truncation, reason = "small")]
    let step = step.round() as usize;
    (values[half], (values[half + step] - values[half - step]) / 2.0)
}

#[test]
fn targets_loaded_in_turn_are_compared_in_the_same_weather() {
    let (mut in_turn, mut one_after_the_other) = (0, 0);
    for run in 0..RUNS {
        let rng = &mut Seed(SEED).rng("drift", run);
        let phase = rng.uniform();
        let pairs =
            Pairs { reference: times(rng, phase), target: times(rng, phase), ..Pairs::default() };
        let found = pairs.shift().estimate(0.5).unwrap();
        in_turn += u64::from(!found.interval.contains(0.0));
        // The first half of the time one target, the second half the other.
        let (first, first_error) = textbook(&pairs.reference[..PAIRS / 2]);
        let (second, second_error) = textbook(&pairs.target[PAIRS / 2..]);
        let error = first_error.hypot(second_error);
        one_after_the_other += u64::from((first - second).abs() > 1.96 * error);
    }
    println!("false alarms of {RUNS}: in turn {in_turn}, sequential {one_after_the_other}");
    assert!(in_turn <= 17, "{in_turn}");
    assert!(one_after_the_other > 100, "{one_after_the_other}");
}
