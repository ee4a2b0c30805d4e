//! Default gates for runs whose profile has none.

use plimsoll_compare::{Comparison, Options, StoredRun, compare};
use plimsoll_metrics::Judgement;

use crate::support::{Figures, Noise, PLAIN, run_of};

/// Three runs on each side with `count` requests; the new ones have a tail slower by `tail`.
fn three(count: u64, tail: f64) -> Comparison {
    let mut noise = Noise(7);
    let mut runs = |new: u64, factor: f64| -> Vec<StoredRun> {
        (0..3)
            .map(|index| {
                let [p50, p99] = noise.figures(0.003, PLAIN).ttft;
                let throughput = noise.around(PLAIN.throughput, 0.002);
                let figures = Figures { ttft: [p50, p99 * factor], throughput, ..PLAIN };
                run_of(count, 2 * index + new, figures)
            })
            .collect()
    };
    let (base, new) = (runs(0, 1.0), runs(1, tail));
    compare(&base, &new, &Options::default()).unwrap()
}

fn judgement<'a>(compared: &'a Comparison, gate: &str) -> &'a Judgement {
    let found = compared.gates.iter().find(|found| found.name == gate);
    &found.unwrap().judged.judgement
}

#[test]
fn three_equal_runs_of_240_requests_pass_on_each_side() {
    let compared = three(240, 1.0);
    for gate in &compared.gates {
        assert_eq!(gate.judged.judgement, Judgement::Pass, "{gate:?}");
    }
    // 1,440 requests cannot show a change of the error rate below 0.5 points.
    let errors = compared.gates.iter().find(|gate| gate.name == "error_rate").unwrap();
    assert!((errors.margin - 0.005).abs() < 1e-12, "{errors:?}");
}

#[test]
fn a_tail_that_blows_up_in_240_requests_is_seen_at_p95() {
    assert_eq!(judgement(&three(240, 2.0), "ttft.p95"), &Judgement::Fail);
    // 1,000 requests have a p99, 100 have a p90.
    assert_eq!(judgement(&three(1_000, 1.0), "ttft.p99"), &Judgement::Pass);
    assert_eq!(judgement(&three(100, 1.0), "ttft.p90"), &Judgement::Pass);
}

/// By hand: three old runs of 600 requests without an error allow 0.2 points (2.802 times the
/// square root of 2 (1/3602)
/// 1800 is 0.16 points), whatever the new runs show.
#[test]
fn the_margin_of_errors_does_not_grow_with_the_errors_of_the_new_runs() {
    let share = |base: &[u64], new: &[u64]| {
        let runs = |errors: &[u64], side: u64| -> Vec<StoredRun> {
            (0..)
                .zip(errors)
                .map(|(i, &errors)| run_of(600, 2 * i + side, Figures { errors, ..PLAIN }))
                .collect()
        };
        let compared = compare(&runs(base, 0), &runs(new, 1), &Options::default()).unwrap();
        let found = compared.gates.into_iter().find(|gate| gate.name == "error_rate").unwrap();
        let state = match found.judged.judgement {
            Judgement::Pass => "pass",
            Judgement::Fail => "fail",
            Judgement::Inconclusive(_) => "inconclusive",
        };
        (found.margin, state)
    };
    for (base, new, margin, state) in [
        (&[0, 0, 0][..], &[5, 4, 4][..], 0.002, "fail"),
        (&[0, 0, 0], &[30, 30, 30], 0.002, "fail"),
        (&[0, 0, 0], &[0, 0, 0], 0.002, "pass"),
        // With an old error rate of 0.72 %, shares differ by 0.79 points by chance alone.
        (&[4, 4, 5], &[0, 0, 0], 0.01, "pass"),
        // The order of the old runs does not matter; these vary too much to show anything.
        (&[0, 0, 13], &[0, 0, 0], 0.01, "inconclusive"),
        (&[13, 0, 0], &[0, 0, 0], 0.01, "inconclusive"),
        (&[0], &[30], 0.002, "inconclusive"),
    ] {
        let found = share(base, new);
        assert!((found.0 - margin).abs() < 1e-12, "{base:?} {new:?}: {found:?}");
        assert_eq!(found.1, state, "{base:?} {new:?}");
    }
}

/// New runs that lost answers have a p95, and the old ones a p99: the common percentile is judged.
#[test]
fn a_tail_is_one_that_every_run_has() {
    let runs = |count: u64, side: u64| -> Vec<StoredRun> {
        (0..3).map(|index| run_of(count, 2 * index + side, PLAIN)).collect()
    };
    for (old, new) in [(1_000, 999), (999, 1_000)] {
        let compared = compare(&runs(old, 0), &runs(new, 1), &Options::default()).unwrap();
        assert_eq!(judgement(&compared, "ttft.p95"), &Judgement::Pass);
        assert!(compared.gates.iter().all(|gate| gate.name != "ttft.p99"));
    }
}
