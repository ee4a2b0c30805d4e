//! Recorders and snapshots.

use plimsoll_measure::{ErrorClass, Nanos, Outcome, Sample, ScenarioId, StageId, TargetId};
use plimsoll_metrics::{GroupKey, GroupStats, Metric, Recorder, Snapshot};
use proptest::prelude::*;

use crate::support::{at, recorder, run, sample};

const FIRST: GroupKey =
    GroupKey { stage: StageId(1), scenario: ScenarioId(0), target: TargetId(0), operation: None };

fn total(recorder: &mut Recorder) -> GroupStats {
    recorder.take().total(|_| true)
}

#[test]
fn many_errors_do_not_change_the_times_of_success() {
    let mut recorder = recorder();
    for i in 0..100 {
        run(&mut recorder, &sample(1, 2_000 + i, 50, Outcome::Completed), &[]);
        run(&mut recorder, &sample(1, 2_000 + i, 1, Outcome::Rejected(429)), &[]);
        run(&mut recorder, &sample(1, 2_000 + i, 7_000, Outcome::TimedOut), &[]);
        run(&mut recorder, &sample(1, 2_000 + i, 3, Outcome::Failed(ErrorClass::ServerError)), &[]);
    }
    let stats = total(&mut recorder);
    let range = |metric| {
        let times = stats.distribution(metric).unwrap();
        (times.count(), times.min().unwrap(), times.max().unwrap())
    };
    let ms = Nanos::from_millis;
    assert_eq!(range(Metric::ResponseTime), (100, ms(51), ms(51)));
    assert_eq!(range(Metric::ServiceTime), (100, ms(50), ms(50)));
    assert_eq!(range(Metric::RejectedServiceTime), (100, ms(1), ms(1)));
    assert_eq!(range(Metric::UnsuccessfulResponseTime), (200, ms(4), ms(7_001)));
    assert_eq!(range(Metric::DispatchLag), (400, ms(1), ms(1)));
    assert_eq!(stats.errors().get(&ErrorClass::ServerError), Some(&100));
    assert_eq!(stats.statuses().get(&429), Some(&100));
}

#[test]
fn gaps_count_only_with_a_completed_request() {
    let gaps = [Nanos::from_millis(10), Nanos::from_millis(30)];
    let mut recorder = recorder();
    run(&mut recorder, &sample(1, 2_000, 50, Outcome::Completed), &gaps);
    run(&mut recorder, &sample(1, 2_000, 50, Outcome::Failed(ErrorClass::StreamTruncated)), &gaps);
    let stats = total(&mut recorder);
    assert_eq!(stats.distribution(Metric::Itl).unwrap().count(), 2);
    assert_eq!(stats.distribution(Metric::Itl).unwrap().max(), Some(gaps[1]));
}

#[test]
fn planned_requests_are_counted_independently_of_their_outcome() {
    let mut recorder = recorder();
    recorder.scheduled(StageId(1), ScenarioId(0), TargetId(0));
    let planned = *recorder.take().total(|_| true).counters();
    assert_eq!((planned.scheduled, planned.balanced()), (1, false));
    run(&mut recorder, &sample(1, 2_000, 0, Outcome::NeverSent), &[]);
    let sent = total(&mut recorder);
    assert!(sent.counters().balanced());
    assert_eq!((sent.counters().never_sent, sent.counters().dispatched_in_stage), (1, 0));
    assert!(sent.distribution(Metric::DispatchLag).is_none());
}

#[test]
fn a_request_without_a_connection_is_not_sent() {
    for (class, sent) in [
        (ErrorClass::ConnectRefused, 1),
        (ErrorClass::ConnectTimeout, 1),
        (ErrorClass::TlsHandshake, 1),
        (ErrorClass::Reset, 2),
        (ErrorClass::ServerError, 2),
    ] {
        let mut recorder = recorder();
        run(&mut recorder, &sample(1, 2_000, 50, Outcome::Completed), &[]);
        run(&mut recorder, &sample(1, 3_000, 50, Outcome::Failed(class)), &[]);
        let counters = *total(&mut recorder).counters();
        assert_eq!(counters.dispatched_in_stage - counters.unsent_in_stage, sent, "{class:?}");
    }
}

#[test]
fn throughput_belongs_to_the_stage_in_which_the_response_ended() {
    let mut recorder = recorder();
    // Intended in stage 1 (1 s to 11 s), completed in stage 2, and in the drain time after it.
    run(&mut recorder, &sample(1, 10_900, 500, Outcome::Completed), &[]);
    run(&mut recorder, &sample(1, 10_900, 50_000, Outcome::Completed), &[]);
    let snapshot = recorder.take();
    let of = |stage| *snapshot.total(|key| key.stage == StageId(stage)).counters();
    assert_eq!((of(1).completed, of(1).completed_in_stage, of(1).dispatched_in_stage), (2, 0, 2));
    assert_eq!((of(2).completed, of(2).completed_in_stage), (0, 1));
    assert_eq!(of(2).output_tokens_reported_in_stage, 5);
}

#[test]
fn the_end_of_a_stage_belongs_to_the_next_one() {
    let mut recorder = Recorder::new(vec![at(101), at(200)]);
    run(&mut recorder, &sample(0, 50, 50, Outcome::Completed), &[]);
    let snapshot = recorder.take();
    let of =
        |stage| snapshot.total(|key| key.stage == StageId(stage)).counters().completed_in_stage;
    assert_eq!((of(0), of(1)), (0, 1));
}

/// The response time is 1 ms more than the service time. One good request ends in the next stage.
#[test]
fn good_requests_are_those_that_keep_every_bound() {
    let bounds = "response_time<60ms, ttft<1s".parse().unwrap();
    let mut recorder = recorder().with_goodput(Some(bounds));
    run(&mut recorder, &sample(1, 2_000, 58, Outcome::Completed), &[]);
    run(&mut recorder, &sample(1, 2_000, 59, Outcome::Completed), &[]);
    run(&mut recorder, &sample(1, 10_960, 50, Outcome::Completed), &[]);
    run(&mut recorder, &sample(1, 2_000, 10, Outcome::Failed(ErrorClass::Reset)), &[]);
    run(&mut recorder, &sample(1, 2_000, 10, Outcome::Cancelled), &[]);
    let mut late = sample(1, 2_000, 60, Outcome::Completed);
    late.generator.dispatch = Nanos::from_millis(2);
    run(&mut recorder, &late, &[]);
    let snapshot = recorder.take();
    let of = |stage| *snapshot.total(|key| key.stage == StageId(stage)).counters();
    let counters = of(1);
    assert_eq!((counters.goodput_judged, counters.good, counters.good_in_stage), (5, 2, 1));
    assert_eq!((of(2).good_in_stage, counters.good_but_for_generator), (1, 1));
    let rates =
        plimsoll_metrics::Rates::compute(&counters, &plimsoll_metrics::Edges::default(), 10.0);
    assert_eq!((rates.goodput_per_s, rates.good_share), (Some(0.1), Some(0.4)));
    let none = plimsoll_metrics::Rates::compute(
        &plimsoll_metrics::Counters::default(),
        &plimsoll_metrics::Edges::default(),
        10.0,
    );
    assert_eq!((none.goodput_per_s, none.good_share), (None, None));
}

#[test]
fn tokens_of_different_sources_are_kept_apart() {
    let mut recorder = recorder();
    let reported = sample(1, 2_000, 50, Outcome::Completed);
    let mut estimated = reported;
    estimated.usage.completion = plimsoll_measure::TokenCount::estimated(7);
    let mut unknown = reported;
    unknown.usage.completion = plimsoll_measure::TokenCount::default();
    for sample in [reported, estimated, unknown] {
        run(&mut recorder, &sample, &[]);
    }
    let counters = *total(&mut recorder).counters();
    assert_eq!((counters.output_tokens_reported, counters.output_tokens_estimated), (5, 7));
    assert_eq!((counters.prompt_tokens_reported, counters.cached_tokens), (300, 120));
}

#[test]
fn take_leaves_an_empty_recorder_and_intervals_add_up() {
    let mut recorder = recorder();
    let mut whole = Snapshot::new();
    for round in 0..3 {
        run(&mut recorder, &sample(1, 2_000 + round, 10, Outcome::Completed), &[]);
        whole.merge(recorder.take());
    }
    assert_eq!(recorder.take().cells().count(), 0);
    assert_eq!(whole.total(|key| key == FIRST).counters().completed, 3);
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        Just(Outcome::Rejected(429)),
        Just(Outcome::Failed(ErrorClass::Reset)),
        Just(Outcome::TimedOut),
        Just(Outcome::NeverSent),
    ];
    (0u16..3, 0u64..20_000, 0u64..9_000, outcome)
        .prop_map(|(stage, intended, service, outcome)| sample(stage, intended, service, outcome))
}

/// Everything that is visible of a snapshot.
fn visible(snapshot: &Snapshot) -> String {
    snapshot
        .cells()
        .map(|(key, stats): (GroupKey, &GroupStats)| {
            let mut canonical = GroupStats::default();
            canonical.merge(stats);
            let times = Metric::ALL.map(|metric| {
                canonical.distribution(metric).map(|d| (d.count(), d.sum(), d.encode().unwrap()))
            });
            format!(
                "{key:?} {:?} {:?} {:?} {times:?}",
                stats.counters(),
                stats.errors(),
                stats.statuses()
            )
        })
        .collect::<Vec<_>>()
        .join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn shards_in_any_order_are_one_recorder(
        samples in proptest::collection::vec(any_sample(), 1..40),
        shards in 1usize..5,
        rotation in 0usize..5,
    ) {
        let mut one = recorder();
        let mut parts = vec![recorder(); shards];
        for (i, sample) in samples.iter().enumerate() {
            run(&mut one, sample, &[Nanos::from_millis(3)]);
            run(&mut parts[i % shards], sample, &[Nanos::from_millis(3)]);
        }
        parts.rotate_left(rotation % shards);
        let mut merged = Snapshot::new();
        for part in &mut parts {
            merged.merge(part.take());
        }
        prop_assert_eq!(visible(&merged), visible(&one.take()));
    }
}
