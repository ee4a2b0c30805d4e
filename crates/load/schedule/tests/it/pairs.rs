//! The schedule of a comparison: balanced, complete, in chronological order.

use std::collections::BTreeMap;

use plimsoll_measure::{ConversationKey, Nanos, Seed, StageId, Stripe, TargetId};
use plimsoll_schedule::{
    Arrival, Arrivals, PairMode, PairOrder, PairSchedule, PairSpec, Schedule, Stages,
};
use proptest::prelude::*;

fn spec(targets: u16, mode: PairMode) -> PairSpec {
    PairSpec {
        targets,
        mode,
        order: PairOrder::Random,
        gap: Nanos::from_millis(50),
        window: Nanos::from_secs(5),
        alone: Nanos::ZERO,
    }
}

fn paired(stages: &str, process: Arrivals, spec: &PairSpec) -> (Schedule, PairSchedule) {
    let stages: Stages = stages.parse().unwrap();
    let schedule = Schedule::new(&stages, process, Seed(7), None).unwrap();
    let pairs = PairSchedule::new(&schedule, process, Seed(7), None, spec);
    (schedule, pairs)
}

/// The arrivals of all targets, by target.
fn by_target(pairs: &PairSchedule, stripe: Stripe) -> Vec<Vec<Arrival>> {
    (0..pairs.targets()).map(|n| pairs.arrivals(stripe, TargetId(n)).collect()).collect()
}

/// Times of the blocks by target.
fn blocks(pairs: &PairSchedule) -> BTreeMap<u64, Vec<Option<Nanos>>> {
    let mut blocks = BTreeMap::new();
    for arrival in by_target(pairs, Stripe::WHOLE).into_iter().flatten() {
        let (block, target) = ConversationKey::arrival(arrival.seq).block(pairs.targets());
        let times: &mut Vec<_> =
            blocks.entry(block.0).or_insert_with(|| vec![None; pairs.targets().into()]);
        assert_eq!(times[target.index()].replace(arrival.at), None, "{arrival:?} comes twice");
    }
    blocks
}

fn millis(time: Nanos) -> f64 {
    time.as_millis_f64()
}

#[test]
fn at_a_constant_rate_the_requests_of_all_targets_are_evenly_spaced() {
    let (_, pairs) = paired("@100:3s", Arrivals::Constant, &spec(4, PairMode::Spread));
    let mut all: Vec<_> = by_target(&pairs, Stripe::WHOLE).into_iter().flatten().collect();
    all.sort_by_key(|arrival| arrival.at);
    assert_eq!(all.len(), 1_200);
    // 4 targets at 100/s each: a request every 2.5 ms.
    for (n, arrival) in all.iter().enumerate() {
        assert!((millis(arrival.at) - 2.5 * n as f64).abs() < 1e-4, "{n}: {arrival:?}");
    }
    assert_eq!(pairs.gap(StageId(0)), Some(Nanos::from_micros(2_500)));
    let (_, slow) = paired("@1:3s", Arrivals::Constant, &spec(4, PairMode::Spread));
    assert_eq!(slow.gap(StageId(0)), Some(Nanos::from_millis(50)), "at most 50 ms");
}

#[test]
fn together_means_the_same_instant_in_a_random_order() {
    let (_, pairs) = paired("@100:3s", Arrivals::Constant, &spec(3, PairMode::Together));
    let mut first = [0; 3];
    for times in blocks(&pairs).values() {
        let times: Vec<_> = times.iter().map(|time| time.unwrap().as_u64()).collect();
        let (earliest, latest) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert_eq!(latest - earliest, 2, "nanoseconds, which keep the order");
        first[times.iter().position(|time| time == earliest).unwrap()] += 1;
    }
    assert_eq!(first, [100, 100, 100]);
}

#[test]
fn a_block_that_would_end_in_the_next_stage_is_not_planned() {
    // 2.5 arrivals in the first stage: the third block begins at 800 ms and lasts 2 x 50 ms more.
    let (schedule, pairs) = paired("@2.5:1s,@1:1s", Arrivals::Constant, &spec(3, PairMode::Spread));
    assert_eq!(schedule.planned(StageId(0)), 3);
    assert_eq!(pairs.blocks(StageId(0)), 3);
    let long = PairSpec { gap: Nanos::from_millis(120), ..spec(3, PairMode::Spread) };
    let (_, pairs) = paired("@2.5:1s,@1:1s", Arrivals::Constant, &long);
    assert_eq!(pairs.blocks(StageId(0)), 2, "at 800, 920 and 1,040 ms");
}

#[test]
fn in_turns_each_target_has_the_time_alone_and_the_same_blocks_at_the_same_offsets() {
    let (schedule, pairs) =
        paired("w@10:2s,@20:31s", Arrivals::Constant, &spec(3, PairMode::Turns));
    // Two rounds of three windows of 31/6 s, and one of the warm-up.
    let window = 31.0 / 6.0 * 1e3;
    assert_eq!([0, 1].map(|stage| pairs.rounds(StageId(stage))), [1, 2]);
    let mut owners: BTreeMap<String, u16> = BTreeMap::new();
    for (target, arrivals) in (0..).zip(by_target(&pairs, Stripe::WHOLE)) {
        for arrival in arrivals.iter().filter(|arrival| arrival.stage == StageId(1)) {
            let number = ((millis(arrival.at) - 2_000.0) / window + 1e-6).floor();
            let owner = *owners.entry(number.to_string()).or_insert(target);
            assert_eq!(owner, target, "two targets in window {number}");
            let spot = pairs.spot(ConversationKey::arrival(arrival.seq), arrival.at);
            let round = 1.0 + (number / 3.0).floor();
            assert_eq!(spot.position.to_string(), (number % 3.0).to_string());
            assert_eq!(spot.window.unwrap().to_string(), round.to_string());
            let within = millis(arrival.at) - 2_000.0 - number * window;
            assert_eq!(spot.counts, within >= 999.999, "{within} ms");
            assert_eq!(schedule.stage_at(arrival.at), Some(arrival.stage));
            let end = pairs.window_end(TargetId(target), arrival.at).unwrap();
            assert!((millis(end) - 2_000.0 - (number + 1.0) * window).abs() < 1e-3);
        }
    }
    assert_eq!(owners.len(), 6);
    for round in [[0, 1, 2], [3, 4, 5]] {
        let mut targets = round.map(|window: u8| owners[&window.to_string()]);
        targets.sort_unstable();
        assert_eq!(targets, [0, 1, 2]);
    }
    for times in blocks(&pairs).values() {
        let offsets: Vec<_> = times
            .iter()
            .map(|time| millis(time.unwrap()))
            .filter(|time| *time >= 2_000.0)
            .map(|time| (time - 2_000.0 + 1e-3) % window)
            .collect();
        assert!(offsets.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 1e-3), "{offsets:?}");
    }
}

#[test]
fn virtual_users_have_all_of_a_stage_beside_each_other() {
    let (_, pairs) = paired("w4:1s,@10:1s,8:20s", Arrivals::Constant, &spec(2, PairMode::Spread));
    for target in [0, 1].map(TargetId) {
        let windows = pairs.user_windows(target);
        let times = windows.iter().map(|w| (w.from.as_secs_f64(), w.to.as_secs_f64()));
        assert_eq!(times.collect::<Vec<_>>(), [(0.0, 1.0), (2.0, 22.0)]);
        assert_ne!(windows[0].round, windows[1].round, "each stage has its own conversations");
    }
    let within = pairs.window(Nanos::from_secs(3));
    assert_eq!(within, (None, true), "no window, and nothing is left out");
    assert_eq!(pairs.rounds(StageId(2)), 0);
    assert_eq!(pairs.loaded(StageId(2)), Nanos::from_secs(20));
}

#[test]
fn virtual_users_take_turns_where_targets_do() {
    let (_, pairs) = paired("w4:1s,@10:10s,8:20s", Arrivals::Constant, &spec(2, PairMode::Turns));
    let of_target = |target: u16| pairs.user_windows(TargetId(target));
    let mut windows = [of_target(0), of_target(1)].concat();
    windows.sort_by_key(|window| window.from);
    assert!(windows.windows(2).all(|pair| pair[0].to <= pair[1].from));
    assert_eq!(windows.len(), 2 + 4, "two of the warm-up, and two rounds of 5 s each");
    let measured = &windows[2..];
    assert_eq!((measured[0].from, measured[3].to), (Nanos::from_secs(11), Nanos::from_secs(31)));
    for round in measured.chunks(2) {
        assert_eq!(round[0].round, round[1].round);
        assert_ne!(round[0].target, round[1].target);
    }
    assert_eq!(pairs.blocks(StageId(2)), 0);
    assert_eq!(pairs.loaded(StageId(2)), Nanos::from_secs(10));
}

#[test]
fn a_part_of_the_time_each_target_is_alone_to_see_whether_they_disturb_each_other() {
    let alone = PairSpec { alone: Nanos::from_secs(3), ..spec(3, PairMode::Spread) };
    let (_, pairs) = paired("@100:90s", Arrivals::Constant, &alone);
    let mut alone_ms = BTreeMap::new();
    for times in blocks(&pairs).values() {
        let times: Vec<_> = times.iter().map(|time| time.unwrap()).collect();
        let spots: Vec<_> = (0..3)
            .zip(&times)
            .map(|(n, at)| {
                let key = ConversationKey::arrival(0).on(TargetId(n), 3);
                pairs.spot(key, *at).window
            })
            .collect();
        assert!(spots.iter().all(|window| *window == spots[0]), "{spots:?}");
        let span = millis(*times.iter().max().unwrap()) - millis(*times.iter().min().unwrap());
        match spots[0] {
            None => assert!(span < 10.0, "{span} ms"),
            Some(window) => {
                assert!((span - 2_000.0).abs() < 1.0, "{span} ms");
                *alone_ms.entry(window).or_insert(0) += 10;
            }
        }
    }
    // Ten rounds take a third of the time: 1 s for each target.
    assert_eq!(alone_ms.len(), 10);
    assert!(alone_ms.values().all(|alone| *alone == 1_000), "{alone_ms:?}");
    // The windows take no time of a very short run, and as much as requested of a long one.
    let rounds = |stages| paired(stages, Arrivals::Constant, &alone).1.rounds(StageId(0));
    assert_eq!((rounds("@100:9s"), rounds("@100:8s"), rounds("w@100:90s")), (10, 0, 0));
    let (_, long) = paired("@1:20m", Arrivals::Constant, &alone);
    let windows = long.arrivals(Stripe::WHOLE, TargetId(0)).filter(|arrival| {
        long.spot(ConversationKey::arrival(arrival.seq), arrival.at).window.is_some()
    });
    assert_eq!(windows.count(), 30);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn nothing_is_lost_over_stripes_and_every_stripe_is_in_the_order_of_time(
        targets in 2u16..7, rate in 1u32..400, alone in 0u64..3, stripes in 1u64..5,
        mode in prop::sample::select(vec![PairMode::Spread, PairMode::Together, PairMode::Turns]),
        process in prop::sample::select(vec![Arrivals::Constant, Arrivals::Poisson]),
    ) {
        let spec = PairSpec {
            alone: Nanos::from_secs(alone),
            window: Nanos::from_secs(1),
            ..spec(targets, mode)
        };
        let stages = format!("w@{rate}:1s,@{rate}..{}:13s", rate * 2);
        let (schedule, pairs) = paired(&stages, process, &spec);
        let whole = by_target(&pairs, Stripe::WHOLE);
        let mut union = vec![Vec::new(); usize::from(targets)];
        for part in (0..stripes).filter_map(|n| Stripe::new(n, stripes)) {
            for (all, own) in union.iter_mut().zip(by_target(&pairs, part)) {
                prop_assert!(own.is_sorted_by_key(|arrival| arrival.at));
                all.extend(own);
            }
        }
        for (all, whole) in union.iter_mut().zip(&whole) {
            all.sort_by_key(|arrival| (arrival.at, arrival.seq));
            prop_assert_eq!(&*all, whole);
        }
        for (block, times) in blocks(&pairs) {
            prop_assert!(times.iter().all(Option::is_some), "block {} misses a target", block);
            let mut places: Vec<_> = (0..targets).zip(&times).map(|(n, at)| {
                let at = at.unwrap_or_default();
                (at, pairs.spot(ConversationKey::arrival(block).on(TargetId(n), targets), at))
            }).collect();
            places.sort_by_key(|(at, _)| *at);
            let positions: Vec<_> = places.iter().map(|(_, spot)| u16::from(spot.position)).collect();
            prop_assert_eq!(positions, (0..targets).collect::<Vec<_>>());
            let stage = |at: &Nanos| schedule.stage_at(*at);
            prop_assert!(places.iter().all(|(at, _)| stage(at) == stage(&places[0].0)));
        }
    }
}
