//! Confidence intervals of a whole run, the accounting in every kind of end, and outcome classes apart.

use plimsoll_measure::{ErrorClass, Nanos, Outcome, Sample, Seed, TargetId};
use plimsoll_metrics::{
    InstrumentHealth, Metric, QUANTILES, RunMetadata, RunSummary, Snapshot, TargetInfo, Validity,
};
use proptest::prelude::*;

use crate::make::{facts, recorder, run, sample};

/// `per_second` completed requests in each of so many seconds of stage 1, with service times from 20 to
/// 120 ms.
fn steady(seconds: u64, per_second: u64) -> RunSummary {
    let (mut recorder, mut snapshot) = (recorder(), Snapshot::new());
    for second in 0..seconds {
        for i in 0..per_second {
            let mut draw = Seed(3).rng("service", second * per_second + i);
            let intended = 1_000 + second * 1_000 + i * 1_000 / per_second;
            run(&mut recorder, &sample(1, intended, 20 + draw.below(100), Outcome::Completed), &[]);
        }
        snapshot.append(recorder.take());
    }
    RunSummary::build(facts(), InstrumentHealth::default(), &snapshot, &[]).unwrap()
}

#[test]
fn independent_times_have_the_interval_of_independent_samples() {
    let summary = steady(10, 200);
    let times = summary.by_stage[1].distribution(Metric::ServiceTime).unwrap();
    let median = times.interval(&QUANTILES[0]).unwrap();
    // 2,000 samples, uniform over 100 ms: 1.96 sqrt(0.25 / 2000) = 2.2 % of 100 ms either way, and a
    // little more because ten batches know the variance less well.
    assert!((2.0..4.5).contains(&(times.p50.unwrap() - median.low)), "{median:?}");
    assert!((2.0..4.5).contains(&(median.high - times.p50.unwrap())), "{median:?}");
    assert_eq!(median.batches, 10);
    assert!((800..=2_000).contains(&median.effective_samples), "{median:?}");
    assert!(times.interval(&QUANTILES[3]).is_some(), "p99: {times:?}");
}

#[test]
fn a_short_stage_has_percentiles_but_no_interval_and_says_why() {
    let summary = steady(7, 300);
    let times = summary.by_stage[1].distribution(Metric::ServiceTime).unwrap();
    assert!(times.p99.is_some() && times.ci.is_empty());
    let why = "p50: a stage is too short: an interval needs 8 batches of a second or more";
    assert_eq!(times.ci_note.as_deref(), Some(why));
}

#[test]
fn one_burst_of_slow_requests_does_not_make_a_certain_p99() {
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
    let summary = RunSummary::build(facts(), InstrumentHealth::default(), &snapshot, &[]).unwrap();
    let times = summary.by_stage[1].distribution(Metric::ServiceTime).unwrap();
    // p99 is 900 ms. Taken for independent, 40 of 2,000 would put it there with certainty.
    assert!(times.p99.unwrap() > 899.0);
    let low = times.interval(&QUANTILES[3]).map(|interval| interval.low);
    assert!(low.is_none_or(|low| low < 21.0), "{times:?}");
}

/// Two targets, so that there is something to add up.
fn two_lanes() -> RunMetadata {
    let mut facts = facts();
    facts.targets.push(TargetInfo { name: "direct".to_owned(), ..TargetInfo::default() });
    facts
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

/// Bit for bit all that is said of the times of success.
fn success(samples: &[Sample]) -> String {
    let (mut recorder, mut snapshot) = (recorder(), Snapshot::new());
    for interval in samples.chunk_by(|a, b| interval(a) == interval(b)) {
        for sample in interval {
            run(&mut recorder, sample, &[Nanos::from_millis(3)]);
        }
        snapshot.append(recorder.take());
    }
    let summary = RunSummary::build(facts(), InstrumentHealth::default(), &snapshot, &[]).unwrap();
    let success = [Metric::ResponseTime, Metric::ServiceTime, Metric::Ttft, Metric::Itl];
    let times = success.map(|metric| summary.total.distribution(metric).cloned());
    format!("{times:?} {:?}", summary.total.rates.throughput_per_s)
}

/// Which interval of four seconds.
fn interval(sample: &Sample) -> u64 {
    sample.timeline.intended.as_nanos() / 4_000_000_000
}

#[test]
fn one_too_many_here_does_not_hide_one_too_few_there() {
    let mut recorder = recorder();
    let lost = sample(1, 12_000, 40, Outcome::Completed);
    recorder.scheduled(lost.stage, lost.scenario, lost.target);
    recorder.record(&sample(2, 12_000, 40, Outcome::Completed), &[]);
    let summary =
        RunSummary::build(facts(), InstrumentHealth::default(), &recorder.take(), &[]).unwrap();
    assert!(summary.accounting().balanced());
    let Validity::Invalid(reasons) = summary.validity else { panic!("it must be invalid") };
    assert_eq!(reasons[0].what.as_str(), "accounting");
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
            RunSummary::build(two_lanes(), InstrumentHealth::default(), &recorder.take(), &[]).unwrap();
        let groups = [&summary.by_stage, &summary.by_scenario, &summary.by_target, &summary.cells];
        for group in groups.into_iter().flatten() {
            prop_assert!(group.accounting().balanced(), "{:?}", group.accounting());
        }
        prop_assert_eq!(summary.accounting().scheduled, samples.len() as u64);
        let measured: u64 = summary.by_target.iter().map(|target| target.counters.scheduled).sum();
        prop_assert_eq!(measured, summary.total.counters.scheduled);
    }

    #[test]
    fn a_storm_of_errors_does_not_move_success_by_a_bit(
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
