//! The gates of runs whose profile has none.

use plimsoll_compare::{Comparison, Options, StoredRun, compare};
use plimsoll_metrics::Judgement;

use crate::support::{Figures, Noise, PLAIN, run_of};

/// Three runs of each side, of so many requests, the new ones slower in the tail by `tail`.
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
    compare(&base, &new, &Options::default(), None).unwrap()
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
    // A change of the share of errors below 0.5 points cannot be seen in 1,440 requests.
    let errors = compared.gates.iter().find(|gate| gate.name == "error_rate").unwrap();
    assert!((errors.margin - 0.005).abs() < 1e-12, "{errors:?}");
}

#[test]
fn a_tail_that_blows_up_in_240_requests_is_seen_at_p95() {
    assert_eq!(judgement(&three(240, 2.0), "ttft.p95"), &Judgement::Fail);
    // With 1,000 there is a p99, and with 100 a p90.
    assert_eq!(judgement(&three(1_000, 1.0), "ttft.p99"), &Judgement::Pass);
    assert_eq!(judgement(&three(100, 1.0), "ttft.p90"), &Judgement::Pass);
}
