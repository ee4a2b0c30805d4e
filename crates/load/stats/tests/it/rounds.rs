//! The mean over rounds covers the truth, whatever differs between them.

use plimsoll_measure::Seed;
use plimsoll_stats::runs::{Round, hartung_knapp};

const SEED: u64 = 1_311;
const RUNS: u64 = 200;

/// Runs whose interval contains the truth.
fn covered(rounds: usize, between: f64) -> u64 {
    (0..RUNS)
        .filter(|run: &u64| {
            let rng = &mut Seed(SEED).rng(&format!("{rounds} {between}"), *run);
            let mut round = || {
                // Rounds are not equally exact.
                let standard_error = 1.0 + 2.0 * rng.uniform();
                let value = 50.0 + between * rng.normal() + standard_error * rng.normal();
                Round { value, standard_error }
            };
            let rounds: Vec<_> = (0..rounds).map(|_| round()).collect();
            hartung_knapp(&rounds).is_some_and(|over| over.interval.contains(50.0))
        })
        .count() as u64
}

#[test]
fn the_interval_over_rounds_covers_the_truth() {
    for rounds in [2, 3, 5, 10] {
        for between in [0.0, 2.0, 20.0] {
            let covered = covered(rounds, between);
            println!("{rounds} rounds, {between} between them: {covered} of {RUNS} covered");
            assert!(covered >= 183, "{rounds} {between}: {covered}");
        }
    }
}
