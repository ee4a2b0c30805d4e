//! J4: one failure in 10,000 is found among 100,000 pairs; as many in one burst are not claimed.

use plimsoll_measure::Seed;
use plimsoll_stats::Looks;
use plimsoll_stats::sign_test::{Discordant, SignTest};

use crate::noise::{BATCHES, geometric};

const SEED: u64 = 1_304;
const RUNS: u64 = 200;
const PAIRS: usize = 100_000;

fn claims(failures: impl Fn(u64) -> Vec<usize>) -> u64 {
    let claimed = (0..RUNS).filter(|&run| {
        let mut batches = vec![Discordant::default(); BATCHES];
        for pair in failures(run) {
            batches[pair * BATCHES / PAIRS].target += 1;
        }
        SignTest::new(&batches, Looks::Once).p < 0.05
    });
    claimed.count() as u64
}

#[test]
fn one_failure_in_10000_is_found_and_a_burst_is_not() {
    let single = claims(|run| {
        let rng = &mut Seed(SEED).rng("single", run);
        let mut gaps = std::iter::repeat_with(move || geometric(rng, 10_000.0));
        let mut next = 0;
        std::iter::from_fn(move || {
            next += gaps.next()?;
            (next <= PAIRS).then_some(next - 1)
        })
        .collect()
    });
    println!("one in 10,000: found in {single} of {RUNS}");
    assert!(single >= 170, "{single}");
    // Ten failures among 100 pairs in a row, which may lie in two batches.
    let burst = claims(|run| {
        let rng = &mut Seed(SEED).rng("burst", run);
        let start = rng.below((PAIRS - 100) as u64);
        (0..10).map(|_| usize::try_from(start + rng.below(100)).unwrap()).collect()
    });
    assert_eq!(burst, 0);
}

#[test]
fn equal_targets_do_not_differ_in_failures() {
    let alarms = (0..RUNS).filter(|&run| {
        let rng = &mut Seed(SEED).rng("equal", run);
        let mut batches = vec![Discordant::default(); BATCHES];
        for _ in 0..40 {
            let batch = &mut batches[usize::try_from(rng.below(BATCHES as u64)).unwrap()];
            if rng.uniform() < 0.5 { batch.target += 1 } else { batch.reference += 1 }
        }
        SignTest::new(&batches, Looks::Once).p < 0.05
    });
    let alarms = alarms.count();
    assert!(alarms <= 17, "{alarms}");
}
