//! Rates of stages that hold few answers. The truths are those of the simulated targets.
#![expect(clippy::cast_possible_truncation, reason = "small whole numbers")]

use std::collections::BTreeMap;

use plimsoll_measure::{
    ConversationKey, Moment, Nanos, Outcome, Sample, StageId, TokenCount, Usage,
};
use plimsoll_metrics::{
    BoundedFigure, InstrumentHealth, Judgement, Limit, LoadModel, Recorder, RunMetadata,
    RunSummary, Snapshot, StageInfo,
};

use crate::support::sample;

const TOKENS: u32 = 200;

/// Stages that follow one another; the first may be a warm-up.
fn stages(model: LoadModel, lengths: &[(f64, bool)]) -> Vec<StageInfo> {
    let mut start_s = 0.0;
    let mut stages = Vec::new();
    for (index, &(duration_s, warmup)) in lengths.iter().enumerate() {
        let name = format!("stage {index}");
        stages.push(StageInfo { name, model, warmup, start_s, duration_s, ..StageInfo::default() });
        start_s += duration_s;
    }
    stages
}

fn at(seconds: f64) -> Moment {
    Moment::EPOCH + Nanos::from_secs_f64(seconds)
}

/// Counts requests that begin and end at these seconds, in the order of their ends, by one worker
/// or by several that share them.
fn measure(
    stages: &[StageInfo],
    requests: &[(ConversationKey, f64, f64)],
    workers: usize,
    apart: bool,
    thresholds: &[Limit],
) -> RunSummary {
    let ends: Vec<_> = stages.iter().map(|stage| at(stage.start_s + stage.duration_s)).collect();
    let mut merged = Snapshot::new();
    for worker in 0..workers {
        let mut recorder = Recorder::new(ends.clone());
        for (_, &(key, from, to)) in
            requests.iter().enumerate().filter(|(index, _)| index % workers == worker)
        {
            let index = ends.partition_point(|end| *end <= at(from));
            let Some(stage) = stages.get(index) else { continue };
            let mut one: Sample = sample(0, 0, 1, Outcome::Completed);
            one.warmup = stage.warmup;
            one.conversation = key;
            one.stage = StageId(u16::try_from(index).unwrap());
            one.usage = Usage { completion: TokenCount::reported(TOKENS), ..Usage::default() };
            let line = &mut one.timeline;
            (line.intended, line.dispatched, line.finished) =
                (at(from), Some(at(from)), Some(at(to)));
            recorder.scheduled(one.stage, one.scenario, one.target);
            recorder.record(&one, &[], &[]);
        }
        recorder.count_warmup(apart);
        merged.merge(recorder.take());
    }
    let mut snapshot = Snapshot::new();
    snapshot.append(merged);
    let metadata = RunMetadata {
        stages: stages.to_vec(),
        scenarios: vec!["simple".to_owned()],
        targets: vec![plimsoll_metrics::TargetInfo::default()],
        ..RunMetadata::default()
    };
    RunSummary::build(metadata, InstrumentHealth::default(), &snapshot, thresholds).unwrap()
}

/// Users with this number in each stage, whose answers take `life(start)` each.
fn users(
    stages: &[StageInfo],
    number: &[u32],
    life: impl Fn(f64) -> f64,
) -> Vec<(ConversationKey, f64, f64)> {
    let mut free: BTreeMap<u32, f64> = BTreeMap::new();
    let mut requests = Vec::new();
    for (stage, users) in stages.iter().zip(number) {
        for user in 0..*users {
            let free = free.entry(user).or_default();
            *free = free.max(stage.start_s);
            while *free < stage.start_s + stage.duration_s {
                let end = *free + life(*free);
                let iteration = u32::try_from(requests.len()).unwrap();
                requests.push((ConversationKey::iteration(user, iteration), *free, end));
                *free = end;
            }
        }
    }
    requests.sort_by(|a, b| a.2.total_cmp(&b.2));
    requests
}

fn rate(summary: &RunSummary, stage: usize, name: &str) -> BoundedFigure {
    summary.results.by_stage[stage].named_rate(name).unwrap()
}

fn holds(figure: BoundedFigure, truth: f64) -> bool {
    let [low, high] = figure.interval.unwrap_or([figure.value * 0.95, figure.value * 1.05]);
    (low..=high).contains(&truth)
}

#[test]
fn users_whose_answers_are_long_have_the_rate_of_their_answers() {
    for life in [0.05, 1.0, 6.45, 20.8] {
        let lengths = [(2.0, true), (30.0, false), (30.0, false), (30.0, false)];
        let stages = stages(LoadModel::Closed, &lengths);
        let requests = users(&stages, &[1, 1, 2, 4], |_| life);
        for workers in [1, 2] {
            let summary = measure(&stages, &requests, workers, false, &[]);
            for (stage, users) in [(1, 1.0), (2, 2.0), (3, 4.0)] {
                let truth = users / life;
                let answers = rate(&summary, stage, "throughput");
                assert!((answers.value / truth - 1.0).abs() < 0.01, "{life}: {answers:?}");
                assert_eq!(answers.interval, None, "{life}");
                let tokens = rate(&summary, stage, "output_token_rate_reported");
                assert!((tokens.value / truth - f64::from(TOKENS)).abs() < 2.0, "{tokens:?}");
                assert_eq!(summary.results.by_stage[stage].token_rate().unwrap().figure, tokens);
            }
        }
    }
}

#[test]
fn answers_of_different_lengths_leave_a_short_stage_open() {
    let stages = stages(LoadModel::Closed, &[(2.0, true), (10.0, false)]);
    // 1, 5 and 3 s in turn: one in 3 s.
    let requests = users(&stages, &[1, 1], |start| match start as u32 % 9 {
        0 => 1.0,
        1 => 5.0,
        _ => 3.0,
    });
    let threshold = Limit::parse("throughput", ">=0.3").unwrap();
    let summary = measure(&stages, &requests, 1, false, &[threshold]);
    let answers = rate(&summary, 1, "throughput");
    let [low, high] = answers.interval.unwrap();
    assert!(low < 0.3 && high > 0.35, "{answers:?}");
    assert!(matches!(summary.thresholds[0].judgement, Judgement::Inconclusive(_)));
}

#[test]
fn a_queue_that_all_users_enter_at_once_is_not_measured_as_faster() {
    // 16 users on 4 slots of 6 s: 0.67 a second. The first answers take 6, 12, 18 and 24 s.
    let mut requests = Vec::new();
    let (mut slots, mut users) = ([0.0; 4], [0.0; 16]);
    for turn in 0..96 {
        let (user, slot) = (turn % 16, turn % 4);
        let end = f64::max(slots[slot], users[user]) + 6.0;
        let key = ConversationKey::iteration(user as u32, turn as u32);
        requests.push((key, users[user], end));
        (slots[slot], users[user]) = (end, end);
    }
    let stages = stages(LoadModel::Closed, &[(2.0, true), (30.0, false)]);
    let summary = measure(&stages, &requests, 1, false, &[]);
    let answers = rate(&summary, 1, "throughput");
    assert!(holds(answers, 4.0 / 6.0), "{answers:?}");
}

/// Levels of 8, 16 and 32 users on 4 slots of 0.5 s: 8 a second at each, in levels as long as the
/// answers of the last one.
#[test]
fn levels_beyond_the_capacity_hold_the_rate_of_the_queue() {
    let mut requests = Vec::new();
    let mut slots = [0.0_f64; 4];
    let mut due: Vec<(f64, u32)> = (0..8).map(|user| (0.0, user)).collect();
    due.extend((8..16).map(|user| (6.0, user)));
    due.extend((16..32).map(|user| (10.0, user)));
    while let Some(next) = (0..due.len()).min_by(|a, b| due[*a].0.total_cmp(&due[*b].0)) {
        let (start, user) = due.swap_remove(next);
        slots.sort_by(f64::total_cmp);
        slots[0] = slots[0].max(start) + 0.5;
        let key = ConversationKey::iteration(user, requests.len() as u32);
        requests.push((key, start, slots[0]));
        if slots[0] < 14.0 {
            due.push((slots[0], user));
        }
    }
    let lengths = [(2.0, true), (4.0, false), (4.0, false), (4.0, false)];
    let summary = measure(&stages(LoadModel::Closed, &lengths), &requests, 1, false, &[]);
    for stage in 1..4 {
        let answers = rate(&summary, stage, "throughput");
        assert!(holds(answers, 8.0), "{stage}: {answers:?}");
    }
}

#[test]
fn a_number_of_requests_takes_the_time_from_their_first_start_to_their_last_answer() {
    // The warm-up leaves an answer of 0.6 s; one request follows it, and ends the load.
    let mut stages = stages(LoadModel::Closed, &[(2.0, true), (30.0, false)]);
    let requests = users(&stages, &[1, 1], |_| 0.6);
    let of_two: Vec<_> = requests.into_iter().filter(|request| request.1 < 2.5).collect();
    (stages[1].start_s, stages[1].duration_s) = (2.4, 0.6);
    let ended = of_two.last().unwrap().2;
    assert!((ended - 3.0).abs() < 1e-9);
    let mut planned = stages.clone();
    planned[1].duration_s = 30.0;
    let summary = measure(&planned, &of_two, 1, true, &[]);
    // `measure` divides by 30 s.
    let answers = rate(&summary, 1, "throughput").value * 30.0;
    assert!((answers - 1.0).abs() < 1e-9, "{answers}");
    let shared = measure(&planned, &of_two, 1, false, &[]);
    let answers = rate(&shared, 1, "throughput").value * 30.0;
    assert!((answers - 1.0 - 0.4 / 0.6).abs() < 1e-5, "{answers}");
}

/// Arrivals at an even rate in each of some stages.
fn arrivals(
    stages: &[StageInfo],
    rates: &[f64],
    life: impl Fn(f64) -> f64,
) -> Vec<(ConversationKey, f64, f64)> {
    let mut requests = Vec::new();
    for (stage, rate) in stages.iter().zip(rates) {
        for number in 0..(stage.duration_s * rate) as u32 {
            let start = stage.start_s + f64::from(number) / rate;
            let key = ConversationKey::arrival(requests.len() as u64);
            requests.push((key, start, start + life(start)));
        }
    }
    requests
}

#[test]
fn the_rate_of_an_open_stage_has_the_error_of_what_is_in_flight_at_its_edges() {
    let lengths = [(2.0, true), (30.0, false), (30.0, false)];
    let stages = stages(LoadModel::Open, &lengths);
    for (life, is_known) in [(0.05, true), (6.45, false), (20.8, false)] {
        let summary =
            measure(&stages, &arrivals(&stages, &[1.0, 1.0, 2.0], |_| life), 1, false, &[]);
        for (stage, truth) in [(1, 1.0), (2, 2.0)] {
            let answers = rate(&summary, stage, "throughput");
            assert!(holds(answers, truth), "{life} s, {truth}/s: {answers:?}");
            assert_eq!(answers.interval.is_none(), is_known, "{life}: {answers:?}");
            let tokens = rate(&summary, stage, "output_token_rate_reported");
            assert!(holds(tokens, truth * f64::from(TOKENS)), "{tokens:?}");
        }
    }
}

/// Four users leave a request each, five sevenths of which lie in the stage of 10/s after theirs.
#[test]
fn an_open_stage_does_not_send_the_requests_of_users_before_it() {
    let mut stages = stages(LoadModel::Open, &[(10.0, false), (5.0, false)]);
    stages[0].model = LoadModel::Closed;
    let mut requests = users(&stages[..1], &[4], |_| 0.7);
    requests.extend(arrivals(&stages, &[0.0, 10.0], |_| 0.7));
    let summary = measure(&stages, &requests, 1, false, &[]);
    for (stage, truth) in [(0, 4.0 / 0.7), (1, 10.0)] {
        for name in ["planned_rate", "achieved_rate"] {
            let found = rate(&summary, stage, name).value;
            assert!((found - truth).abs() < 1e-3, "{stage} {name}: {found}");
        }
    }
}

#[test]
fn an_overloaded_target_fails_a_threshold_above_its_capacity() {
    // 200 a second are due, and 100 are answered, first come, first served.
    let stages = stages(LoadModel::Open, &[(2.0, true), (30.0, false)]);
    let requests = arrivals(&stages, &[200.0, 200.0], |start| start + 0.01);
    let thresholds = [">=150", ">=90"].map(|bound| Limit::parse("throughput", bound).unwrap());
    let summary = measure(&stages, &requests, 1, false, &thresholds);
    let judged: Vec<_> = summary.thresholds.iter().map(|one| &one.judgement).collect();
    assert_eq!(judged, [&Judgement::Fail, &Judgement::Pass]);
    let sent = rate(&summary, 1, "achieved_rate").value;
    assert!((sent - 200.0).abs() < 0.1, "{sent}");
}
