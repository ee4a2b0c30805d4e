//! Confidence intervals in the summary of a run.

use plimsoll_measure::{Outcome, Seed};
use plimsoll_metrics::{InstrumentHealth, Metric, QUANTILES, RunSummary, Snapshot};

use crate::support::{metadata, recorder, run, sample};

/// `per_second` completed requests in each of the first `seconds` of stage 1, with service times
/// from 20 to 120 ms.
fn steady(seconds: u64, per_second: u64) -> RunSummary {
    let (mut recorder, mut snapshot) = (recorder(), Snapshot::new());
    for second in 0..seconds {
        for i in 0..per_second {
            let mut rng = Seed(3).rng("service", second * per_second + i);
            let intended = 1_000 + second * 1_000 + i * 1_000 / per_second;
            run(&mut recorder, &sample(1, intended, 20 + rng.below(100), Outcome::Completed), &[]);
        }
        snapshot.append(recorder.take());
    }
    RunSummary::build(metadata(), InstrumentHealth::default(), &snapshot, &[]).unwrap()
}

#[test]
fn independent_times_have_the_interval_of_independent_samples() {
    let summary = steady(10, 200);
    let times = summary.results.by_stage[1].distribution(Metric::ServiceTime).unwrap();
    let median = times.interval(&QUANTILES[0]).unwrap();
    // 2,000 samples, uniform over 100 ms: 1.96 sqrt(0.25 / 2000) = 2.2 % of 100 ms either way, and
    // a little more because ten batches estimate the variance less well.
    let p50 = times.figure(&QUANTILES[0]).unwrap().value;
    assert!((2.0..4.5).contains(&(p50 - median.low)), "{median:?}");
    assert!((2.0..4.5).contains(&(median.high - p50)), "{median:?}");
    assert_eq!(median.batches, 10);
    assert!((800..=2_000).contains(&median.effective_samples), "{median:?}");
    assert!(times.interval(&QUANTILES[3]).is_some(), "p99: {times:?}");
}

#[test]
fn a_short_stage_has_percentiles_and_a_reason_for_no_interval() {
    let summary = steady(7, 300);
    let times = summary.results.by_stage[1].distribution(Metric::ServiceTime).unwrap();
    assert!(times.figure(&QUANTILES[3]).is_some() && times.ci.is_empty());
    let why = "p50: a stage is too short: an interval needs 8 batches of a second or more";
    assert_eq!(times.ci_note.as_deref(), Some(why));
}

#[test]
fn one_burst_of_slow_requests_does_not_make_p99_certain() {
    let (mut recorder, mut snapshot) = (recorder(), Snapshot::new());
    for second in 0..10 {
        for i in 0..200 {
            // All the slow ones, 2 % of the requests, come in one second.
            let service = if second == 4 && i < 40 { 900 } else { 20 };
            run(
                &mut recorder,
                &sample(1, 1_000 + second * 1_000 + i * 5, service, Outcome::Completed),
                &[],
            );
        }
        snapshot.append(recorder.take());
    }
    let summary =
        RunSummary::build(metadata(), InstrumentHealth::default(), &snapshot, &[]).unwrap();
    let times = summary.results.by_stage[1].distribution(Metric::ServiceTime).unwrap();
    // p99 is 900 ms. If the samples were independent, 40 of 2,000 would make that certain.
    assert!(times.figure(&QUANTILES[3]).unwrap().value > 899.0);
    let low = times.interval(&QUANTILES[3]).map(|interval| interval.low);
    assert!(low.is_none_or(|low| low < 21.0), "{times:?}");
}
