//! The accounting identity for every kind of end, and outcome classes kept apart.

use std::collections::BTreeMap;

use plimsoll_measure::{ErrorClass, Nanos, Outcome, Sample, TargetId};
use plimsoll_metrics::{
    InstrumentHealth, Level, Metric, RunMetadata, RunSummary, Snapshot, TargetInfo,
};
use proptest::prelude::*;

use crate::support::{metadata, recorder, run, sample};

/// Two targets, so that there is something to add up.
fn two_targets() -> RunMetadata {
    let mut metadata = metadata();
    metadata.targets.push(TargetInfo { name: "direct".to_owned(), ..TargetInfo::default() });
    metadata
}

fn any_end() -> impl Strategy<Value = Sample> {
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        Just(Outcome::Rejected(429)),
        Just(Outcome::Failed(ErrorClass::Reset)),
        Just(Outcome::TimedOut),
        Just(Outcome::Cancelled),
        Just(Outcome::InFlight),
        Just(Outcome::NeverSent),
    ];
    (0u16..3, 0u16..2, 0u64..20_000, 0u64..9_000, outcome).prop_map(
        |(stage, target, intended, service, outcome)| {
            let mut sample = sample(stage, intended, service, outcome);
            sample.target = TargetId(target);
            if outcome == Outcome::InFlight {
                sample.timeline.finished = None;
            }
            sample
        },
    )
}

/// Every figure of the times of completed requests, to the last bit. Whether they may be used does
/// depend on the requests without an end.
fn success(samples: &[Sample]) -> String {
    let (mut recorder, mut snapshot) = (recorder(), Snapshot::new());
    for interval in samples.chunk_by(|a, b| interval(a) == interval(b)) {
        for sample in interval {
            run(&mut recorder, sample, &[Nanos::from_millis(3)]);
        }
        snapshot.append(recorder.take());
    }
    let summary =
        RunSummary::build(metadata(), InstrumentHealth::default(), &snapshot, &[]).unwrap();
    let success = [Metric::ResponseTime, Metric::ServiceTime, Metric::Ttft, Metric::Itl];
    let times = success.map(|metric| {
        let mut times = summary.results.total.distribution(metric)?.clone();
        (times.unfinished, times.refused) = (0, BTreeMap::new());
        Some(times)
    });
    format!("{times:?} {:?}", summary.results.total.rates.throughput_per_s)
}

/// The interval of four seconds that the request belongs to.
fn interval(sample: &Sample) -> u64 {
    sample.timeline.intended.as_nanos() / 4_000_000_000
}

#[test]
fn one_request_too_many_does_not_hide_one_too_few_elsewhere() {
    let mut recorder = recorder();
    let lost = sample(1, 12_000, 40, Outcome::Completed);
    recorder.scheduled(lost.stage, lost.scenario, lost.target);
    recorder.record(&sample(2, 12_000, 40, Outcome::Completed), &[], &[]);
    let summary =
        RunSummary::build(metadata(), InstrumentHealth::default(), &recorder.take(), &[]).unwrap();
    assert!(summary.results.accounting().balanced());
    let invalid: Vec<_> = summary.of_level(Level::Invalid).map(|found| found.code).collect();
    assert_eq!(invalid, [106]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn the_accounting_holds_in_every_group_however_requests_end(
        samples in proptest::collection::vec(any_end(), 0..60),
    ) {
        let mut recorder = recorder();
        for sample in &samples {
            run(&mut recorder, sample, &[]);
        }
        let summary =
            RunSummary::build(two_targets(), InstrumentHealth::default(), &recorder.take(), &[]).unwrap();
        let groups = [&summary.results.by_stage, &summary.results.by_scenario, &summary.results.by_target, &summary.results.cells];
        for group in groups.into_iter().flatten() {
            prop_assert!(group.counters.balanced(), "{:?}", group.counters);
        }
        prop_assert_eq!(summary.results.accounting().scheduled, samples.len() as u64);
        let measured: u64 = summary.results.by_target.iter().map(|target| target.counters.scheduled).sum();
        prop_assert_eq!(measured, summary.results.total.counters.scheduled);
    }

    #[test]
    fn errors_do_not_change_the_figures_of_success(
        storm in proptest::collection::vec(any_end(), 0..60),
    ) {
        let calm = (0..300).map(|i| sample(1, 1_000 + i * 32, 30 + i * 7 % 50, Outcome::Completed));
        let calm: Vec<_> = calm.collect();
        let errors = storm.into_iter().filter(|sample| sample.outcome != Outcome::Completed);
        let mut stormy: Vec<_> = calm.iter().copied().chain(errors).collect();
        stormy.sort_by_key(|sample| sample.timeline.intended);
        prop_assert_eq!(success(&stormy), success(&calm));
    }
}
