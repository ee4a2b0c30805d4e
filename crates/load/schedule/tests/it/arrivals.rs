//! The open model: counts, spacing and distribution of arrivals.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Seed, StageId, Stripe};
use plimsoll_schedule::{Arrival, Arrivals, Schedule, Stages};
use proptest::prelude::*;

fn schedule(stages: &str, process: Arrivals) -> Schedule {
    Schedule::new(&stages.parse().unwrap(), process, Seed(7), None).unwrap()
}

fn whole(schedule: &Schedule) -> Vec<Arrival> {
    schedule.arrivals(Stripe::WHOLE).collect()
}

fn traced(stages: &str, millis: &[u64]) -> Result<Schedule, plimsoll_schedule::ScheduleError> {
    let offsets: Arc<[Nanos]> = millis.iter().copied().map(Nanos::from_millis).collect();
    Schedule::new(&stages.parse().unwrap(), Arrivals::Poisson, Seed(7), Some(offsets))
}

#[test]
fn a_constant_rate_has_equal_gaps() {
    let arrivals = whole(&schedule("@4:2s", Arrivals::Constant));
    let millis: Vec<_> = arrivals.iter().map(|a| a.at.as_u64() / 1_000_000).collect();
    assert_eq!(millis, [0, 250, 500, 750, 1000, 1250, 1500, 1750]);
}

#[test]
fn counts_are_the_integral_of_the_rate() {
    for (stages, expected) in [
        ("@1:10s", 10),
        ("@7:10s", 70),
        ("@333:3s", 999),
        ("@1000:10s", 10_000),
        ("@33333:10s", 333_330),
        ("@0.1:30s", 3),
        ("@0.3:10s", 3),
        ("@0.001:10s", 1),
        ("@0..100:10s", 500),
        ("@100..0:10s", 500),
        ("@100..300:5s", 1_000),
    ] {
        let schedule = schedule(stages, Arrivals::Constant);
        assert_eq!(schedule.planned(StageId(0)), expected, "{stages}");
        assert_eq!(whole(&schedule).len() as u64, expected, "{stages}");
    }
}

#[test]
fn a_constant_rate_does_not_drift() {
    // `rate.rs` tests hours of due times; this tests the iterator and the count.
    let hours = schedule("@33333:10h", Arrivals::Constant);
    assert_eq!(hours.planned(StageId(0)), 33_333 * 36_000);
    for arrival in
        schedule("@33333:30s", Arrivals::Constant).arrivals(Stripe::new(5, 1_003).unwrap())
    {
        let exact = u128::from(arrival.seq) * 1_000_000_000 / 33_333;
        assert!(u128::from(arrival.at.as_u64()).abs_diff(exact) <= 1, "{arrival:?}");
    }
}

#[test]
fn ramps_follow_the_closed_form_at_every_second() {
    for (a, b, secs) in
        [(0.0, 500.0, 60u32), (500.0, 0.0, 60), (100.0, 5_000.0, 30), (50.0, 20.0, 45)]
    {
        let stages = format!("@{a}..{b}:{secs}s");
        let arrivals = whole(&schedule(&stages, Arrivals::Constant));
        for second in 0..=secs {
            let t = f64::from(second);
            let expected = a * t + (b - a) * t * t / (2.0 * f64::from(secs));
            let end = Nanos::from_secs(u64::from(second));
            let seen = arrivals.iter().filter(|arrival| arrival.at < end).count();
            assert!(
                (seen as f64 - expected).abs() <= 1.0,
                "{stages} at {second} s: {seen} {expected}"
            );
        }
    }
}

#[test]
fn stages_follow_one_another_and_number_their_arrivals() {
    let schedule = schedule("w@10:1s,5:2s,@20:1s", Arrivals::Constant);
    let arrivals = whole(&schedule);
    assert_eq!(schedule.duration(), Nanos::from_secs(4));
    assert_eq!(arrivals.len(), 30);
    assert!(arrivals.iter().zip(0..).all(|(arrival, seq)| arrival.seq == seq));
    let first = arrivals[10];
    assert_eq!((first.stage, first.index, first.at), (StageId(2), 0, Nanos::from_secs(3)));
    let planned = [0, 1, 2, 3].map(|stage| schedule.planned(StageId(stage)));
    assert_eq!(planned, [10, 0, 20, 0], "closed stages and unknown ids have none");
    let at = |millis| schedule.stage_at(Nanos::from_millis(millis));
    assert_eq!([at(0), at(999), at(1_000), at(3_999)], [0, 0, 1, 2].map(|id| Some(StageId(id))));
    assert_eq!(at(4_000), None);
}

#[test]
fn a_trace_is_played_row_by_row_from_the_start_of_its_stage() {
    let schedule = traced("@2:1s,trace,trace:25ms", &[0, 10, 10, 30]).unwrap();
    let played: Vec<_> = whole(&schedule)
        .iter()
        .filter(|a| a.stage != StageId(0))
        .map(|a| (a.stage.0, a.index, a.at.saturating_sub(Nanos::from_secs(1)).as_u64()))
        .collect();
    let ms = 1_000_000;
    assert_eq!(
        played,
        [
            (1, 0, 0),
            (1, 1, 10 * ms),
            (1, 2, 10 * ms),
            (1, 3, 30 * ms),
            (2, 0, 40 * ms),
            (2, 1, 50 * ms),
            (2, 2, 50 * ms),
        ]
    );
    assert_eq!(schedule.planned(StageId(1)), 4);
    assert_eq!(schedule.planned(StageId(2)), 3, "its 25 ms cut the last row off");
}

#[test]
fn a_trace_stage_lasts_as_long_as_its_rows_at_their_mean_rate() {
    let even: Vec<_> = (0..50).map(|row| row * 60).collect();
    let hour: Vec<_> = (0..3).map(|row| row * 1_800_000).collect();
    for (sentence, stage, rows, millis) in [
        ("50 rows, one each 60 ms", "trace", &even[..], 3_000),
        ("a stage that is longer", "trace:15s", &even, 3_000),
        ("a stage that is shorter", "trace:1s", &even, 1_000),
        ("one row", "trace", &[0], 1_000),
        ("one row after the start of the window", "trace", &[500], 1_500),
        ("rows at the same time", "trace", &[0, 0], 1_000),
        ("two of three rows at the same time", "trace", &[0, 0, 400], 600),
        ("rows far apart", "trace", &hour, 3_601_000),
    ] {
        let schedule = traced(&format!("{stage},@1:1s"), rows).unwrap();
        let trace = schedule.stages()[0];
        assert_eq!(trace.end, Nanos::from_millis(millis), "{sentence}");
        assert_eq!(schedule.stages()[1].start, trace.end, "{sentence}");
    }
}

#[test]
fn a_trace_that_cannot_be_played_is_refused() {
    for (sentence, refused, part) in [
        ("no rows", traced("trace", &[]), "the trace is empty"),
        ("back in time", traced("trace", &[0, 20, 10]), "goes back in time at row 2"),
        (
            "no trace",
            Schedule::new(&"5:1s,trace".parse().unwrap(), Arrivals::Constant, Seed(1), None),
            "stage 2 `trace`: the profile has no trace to play",
        ),
        (
            "no stages",
            Schedule::new(&Stages::default(), Arrivals::Constant, Seed(1), None),
            "the stage is empty",
        ),
    ] {
        let message = refused.map(|_| sentence).unwrap_err().to_string();
        assert!(message.contains(part), "{sentence}: {message}");
    }
}

/// Kolmogorov-Smirnov distance to the exponential distribution with mean 1.
fn distance_to_exponential(mut gaps: Vec<f64>) -> f64 {
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    gaps.iter()
        .zip(0..)
        .map(|(gap, i)| {
            let model = 1.0 - (-gap).exp();
            let below = f64::from(i) / n;
            (model - below).abs().max((below + 1.0 / n - model).abs())
        })
        .fold(0.0, f64::max)
}

fn gaps(axis: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut last = 0.0;
    axis.map(|x| x - std::mem::replace(&mut last, x)).collect()
}

/// The Kolmogorov-Smirnov distance that a true sample of this size exceeds in 1 % of cases.
fn critical(samples: usize) -> f64 {
    1.628 / (samples as f64).sqrt()
}

#[test]
fn poisson_gaps_are_exponential() {
    let arrivals = whole(&schedule("@1000:30s", Arrivals::Poisson));
    assert!(
        (arrivals.len() as f64 - 30_000.0).abs() < 3.0 * 30_000f64.sqrt(),
        "{}",
        arrivals.len()
    );
    let gaps = gaps(arrivals.iter().map(|a| a.at.as_secs_f64() * 1_000.0));
    assert!(distance_to_exponential(gaps) < critical(arrivals.len()));
}

#[test]
fn poisson_gaps_of_a_ramp_are_exponential_on_the_axis_of_its_integral() {
    for (stages, integral) in [
        ("@0..2000:20s", (|t| 50.0 * t * t) as fn(f64) -> f64),
        ("@2000..0:20s", |t| 2_000.0 * t - 50.0 * t * t),
    ] {
        let arrivals = whole(&schedule(stages, Arrivals::Poisson));
        let gaps = gaps(arrivals.iter().map(|a| integral(a.at.as_secs_f64())));
        assert!(distance_to_exponential(gaps) < critical(arrivals.len()), "{stages}");
    }
}

#[test]
fn poisson_counts_scatter_as_much_as_their_mean() {
    let windows = 20_000;
    let mut counts = vec![0.0f64; windows];
    for arrival in whole(&schedule("@1000:200s", Arrivals::Poisson)) {
        counts[usize::try_from(arrival.at.as_u64() / 10_000_000).unwrap()] += 1.0;
    }
    let mean = counts.iter().sum::<f64>() / windows as f64;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (windows as f64 - 1.0);
    assert!((variance / mean - 1.0).abs() < 0.05, "dispersion {}", variance / mean);
}

#[test]
fn poisson_stages_differ_from_one_another_and_with_the_seed() {
    let two = whole(&schedule("@100:10s,@100:10s", Arrivals::Poisson));
    let offsets = |stage| {
        let start = Nanos::from_secs(u64::from(stage) * 10);
        let of_stage = two.iter().filter(move |a| a.stage == StageId(stage));
        of_stage.map(|a| a.at.saturating_sub(start)).collect::<Vec<_>>()
    };
    assert_ne!(offsets(0)[..50], offsets(1)[..50]);
    let stages = "@100:10s".parse().unwrap();
    let other = Schedule::new(&stages, Arrivals::Poisson, Seed(8), None).unwrap();
    assert_ne!(whole(&other)[0].at, two[0].at);
}

#[test]
fn a_schedule_is_sync_and_its_iterator_is_send() {
    const fn shared<T: Send + Sync + Clone>(_: &T) {}
    const fn sent<T: Send + 'static>(_: &T) {}
    let schedule = schedule("@10:1s", Arrivals::Constant);
    shared(&schedule);
    sent(&schedule.arrivals(Stripe::WHOLE));
}

fn any_stages() -> impl Strategy<Value = String> {
    let stage = prop_oneof![
        (0u32..400, 1u32..400, 1u32..3_000).prop_map(|(a, b, ms)| format!("@{a}..{b}:{ms}ms")),
        (1u32..4_000, 1u32..3_000).prop_map(|(r, ms)| format!("w@{}:{ms}ms", f64::from(r) / 10.0)),
        (1u32..9, 1u32..500).prop_map(|(n, ms)| format!("{n}:{ms}ms")),
        Just("trace:30ms".to_owned()),
    ];
    proptest::collection::vec(stage, 1..5).prop_map(|stages| stages.join(","))
}

fn any_process() -> impl Strategy<Value = Arrivals> {
    prop_oneof![Just(Arrivals::Constant), Just(Arrivals::Poisson)]
}

/// By hand: a rate that grows from 0 by 10 per second each second has 5 t^2 arrivals, the 20th at 2
/// s and the 21st at the root of 4.2 s; one that falls from 10 to 0 has its last at its end.
#[test]
fn one_more_arrival_is_due_where_the_rate_has_it() {
    let schedule = schedule("@100:1s,@0..100:10s,@10..0:10s,2:1s", Arrivals::Constant);
    let due = |stage: usize, at: f64| {
        schedule.stages()[stage].next_due(Nanos::from_secs_f64(at)).as_secs_f64()
    };
    for (stage, at, expected) in [
        (0, 0.19, 0.2),
        (0, 0.995, 1.0),
        (1, 1.0 + 2.0, 1.0 + 4.2_f64.sqrt()),
        (2, 20.9, 21.0),
        (3, 21.5, 21.5),
    ] {
        assert!((due(stage, at) - expected).abs() < 1e-6, "{stage}: {}", due(stage, at));
    }
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let offsets: Arc<[Nanos]> = [1, 5, 5, 29, 30, 31].map(Nanos::from_millis).into();
    (any_stages(), any_process(), any::<u64>()).prop_map(move |(stages, process, seed)| {
        let trace = Some(Arc::clone(&offsets));
        Schedule::new(&stages.parse().unwrap(), process, Seed(seed), trace).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn shards_and_their_workers_together_are_the_whole(
        schedule in any_schedule(), shards in 1u64..5, workers in 1u64..4,
    ) {
        let mut parts: Vec<Arrival> = Vec::new();
        for (shard, worker) in (0..shards).flat_map(|s| (0..workers).map(move |w| (s, w))) {
            let stripe = Stripe::new(shard, shards).unwrap().divide(worker, workers).unwrap();
            parts.extend(schedule.arrivals(stripe));
        }
        parts.sort_by_key(|arrival| arrival.seq);
        prop_assert_eq!(parts, whole(&schedule));
    }

    #[test]
    fn arrivals_come_in_order_and_inside_their_stage(schedule in any_schedule()) {
        let arrivals = whole(&schedule);
        prop_assert!(arrivals.iter().zip(0..).all(|(arrival, seq)| arrival.seq == seq));
        prop_assert!(arrivals.windows(2).all(|pair| pair[0].at <= pair[1].at));
        for arrival in arrivals {
            prop_assert_eq!(schedule.stage_at(arrival.at), Some(arrival.stage));
        }
    }

    #[test]
    fn planned_counts_equal_the_arrivals(schedule in any_schedule()) {
        let arrivals = whole(&schedule);
        for stage in schedule.stages() {
            let counted = arrivals.iter().filter(|arrival| arrival.stage == stage.id).count() as u64;
            prop_assert_eq!(schedule.planned(stage.id), counted);
        }
    }

    #[test]
    fn counts_are_the_area_under_the_rate_to_within_one(
        a in 0.0f64..900.0, b in 0.1f64..900.0, ms in 1u32..20_000,
    ) {
        let planned = schedule(&format!("@{a}..{b}:{ms}ms"), Arrivals::Constant).planned(StageId(0));
        let area = f64::midpoint(a, b) * f64::from(ms) / 1_000.0;
        prop_assert!((planned as f64 - area).abs() <= 1.0, "{} {}", planned, area);
    }
}
