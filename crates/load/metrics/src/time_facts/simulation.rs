//! False alarms and power of the rules about changes, overload and standstill, by simulation.
//!
//! A rule may fire in at most 0.1 % of the runs without its cause. The tests simulate fewer runs
//! than that needs; `SIMULATED_RUNS=20000 cargo test --release -p plimsoll-metrics simulation`
//! shows the shares.

#![expect(clippy::cast_possible_truncation, reason = "simulated times are small and positive")]

use super::{Moments, TimeFacts};
use crate::catalog::{Counters, Metric};
use crate::run_metadata::{LoadModel, RunEnd, RunMetadata, StageInfo};
use crate::starts::{FailedAt, FailedBy};
use crate::timeline::{RunTimeline, TimelineGroup, TimelineInterval, TimelineStage, TimelineTimes};

/// The most false alarms, as a share of the runs.
const FALSE_ALARMS: f64 = 0.001;

fn runs() -> u64 {
    std::env::var("SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(150)
}

/// `SplitMix64`, with the distributions that are needed.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    fn normal(&mut self) -> f64 {
        let angle = std::f64::consts::TAU * self.uniform();
        (2.0 * self.exponential()).sqrt() * angle.cos()
    }
}

/// An open load of 30 requests/s in front of servers.
#[derive(Clone, Copy)]
struct Model {
    seconds: usize,
    servers: usize,
    /// Mean service time in seconds.
    service: f64,
    /// Requests of a burst; 1 for Poisson arrivals.
    burst: usize,
    /// Whether arrivals have a constant rate.
    even: bool,
    /// Standard deviation of the logarithm of the speed, autocorrelated by 0.7 from second to
    /// second.
    drift: f64,
    /// The factor by which the service time rises evenly until the end.
    trend: f64,
    /// From this second on the service time is as many times as long.
    step: Option<(usize, f64)>,
    /// The second at which the target stands still, and for how long.
    stop: Option<(f64, f64)>,
    /// How long Plimsoll pauses in each second.
    paused: f64,
}

const RATE: f64 = 30.0;

const STATIONARY: Model = Model {
    seconds: 40,
    servers: 8,
    service: 0.1,
    burst: 1,
    even: false,
    drift: 0.0,
    trend: 1.0,
    step: None,
    stop: None,
    paused: 0.02,
};

/// Loads without any of the three causes.
const SOUND: [(&str, Model); 7] = [
    ("stationary", STATIONARY),
    ("queueing", Model { servers: 4, ..STATIONARY }),
    ("bursty", Model { burst: 10, ..STATIONARY }),
    ("autocorrelated", Model { drift: 0.15, ..STATIONARY }),
    ("trend", Model { trend: 2.0, ..STATIONARY }),
    ("long answers", Model { servers: 60, service: 1.0, ..STATIONARY }),
    ("even", Model { even: true, servers: 4, seconds: 12, ..STATIONARY }),
];

/// When each request was due and when it ended.
fn simulated(model: Model, random: &mut Random) -> Vec<(f64, f64)> {
    let mut free = vec![0.0_f64; model.servers];
    let mut speeds = vec![0.0_f64; 4 * model.seconds];
    for second in 1..speeds.len() {
        speeds[second] = 0.7 * speeds[second - 1] + 0.714 * random.normal();
    }
    let (mut due, mut requests) = (0.0, Vec::new());
    loop {
        let gap = if model.even { 1.0 } else { random.exponential() };
        due += gap * model.burst as f64 / RATE;
        if due >= model.seconds as f64 {
            return requests;
        }
        for _ in 0..model.burst {
            let next = (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
            let mut start = f64::max(due, free[next]);
            let second = start as usize;
            let speed = speeds.get(second).copied().unwrap_or_default();
            let part = start / model.seconds as f64;
            let mut service = model.service * (0.5 + 0.5 * random.exponential());
            service *= (model.drift * speed).exp() * (1.0 + (model.trend - 1.0) * part);
            service *= model.step.map_or(1.0, |(at, by)| if second >= at { by } else { 1.0 });
            if let Some((at, length)) = model.stop
                && start + service > at
                && start < at + length
            {
                start += length;
            }
            free[next] = start + service;
            requests.push((due, free[next]));
        }
    }
}

/// The findings of the product for such a run.
fn facts(model: Model, random: &mut Random) -> TimeFacts {
    facts_with(model, random, FailedAt::default(), RunEnd::Complete)
}

/// The same of a run with failures.
fn facts_with(model: Model, random: &mut Random, failed: FailedAt, ended: RunEnd) -> TimeFacts {
    let requests = simulated(model, random);
    let end = requests.iter().map(|(_, end)| *end).fold(0.0, f64::max).ceil() as usize + 1;
    let mut moments = Moments { ended: vec![0; 10 * end], failed };
    for (_, end) in &requests {
        moments.ended[(10.0 * end) as usize] += 1;
    }
    let stage = "@30:40s".to_owned();
    let group = |second: usize| {
        let of_second = |at: f64| at as usize == second;
        let ended: Vec<_> = requests.iter().filter(|(_, end)| of_second(*end)).collect();
        let mut times: Vec<f64> = ended.iter().map(|(due, end)| 1e3 * (end - due)).collect();
        times.sort_by(f64::total_cmp);
        let median_ms = times.get(times.len() / 2).copied();
        let times = TimelineTimes { median_ms, ..TimelineTimes::default() };
        let metrics = [Metric::ResponseTime, Metric::ServiceTime];
        let completed = ended.len() as u64;
        let due = requests.iter().filter(|(due, _)| of_second(*due)).count() as u64;
        TimelineGroup {
            stage: stage.clone(),
            target: "gw".to_owned(),
            due,
            sent: due,
            counters: Counters { completed, ..Counters::default() },
            times: metrics.map(|metric| (metric.key().to_owned(), times.clone())).into(),
            ..TimelineGroup::default()
        }
    };
    let intervals = (0..end).map(|second| {
        let after = second as f64 + 1.0;
        let open = requests.iter().filter(|(due, end)| *due < after && *end >= after).count();
        let (start_s, in_flight) = (second as f64, vec![open as u64]);
        let groups = vec![group(second)];
        TimelineInterval {
            start_s,
            length_s: 1.0,
            in_flight,
            groups,
            disturbed_s: model.paused,
            ..TimelineInterval::default()
        }
    });
    let (name, duration_s) = (stage.clone(), model.seconds as f64);
    let info = StageInfo { name, model: LoadModel::Open, duration_s, ..StageInfo::default() };
    let timeline = RunTimeline {
        interval_s: 1.0,
        stages: vec![TimelineStage { name: stage.clone(), duration_s, ..TimelineStage::default() }],
        targets: vec!["gw".to_owned()],
        intervals: intervals.collect(),
        ..RunTimeline::default()
    };
    let mut metadata = RunMetadata { stages: vec![info], ..RunMetadata::default() };
    metadata.run.ended = ended;
    TimeFacts::collect(&timeline, &metadata, &[moments])
}

/// The shares of runs with overload, a change and a standstill.
fn shares(model: Model, seed: u64) -> [f64; 3] {
    let mut random = Random(seed);
    let mut fired = [0u64; 3];
    for _ in 0..runs() {
        let facts = facts(model, &mut random);
        let counts = [facts.backlogs.len(), facts.changes.len(), facts.silences.len()];
        fired.iter_mut().zip(counts).for_each(|(all, count)| *all += count as u64);
    }
    fired.map(|count| count as f64 / runs() as f64)
}

#[test]
fn loads_without_a_cause_have_no_finding() {
    for (seed, (name, model)) in (1..).zip(SOUND) {
        let shares = shares(model, seed);
        println!("{name}: overload, change, standstill {shares:?}");
        assert!(shares.iter().all(|share| *share <= FALSE_ALARMS), "{name}: {shares:?}");
    }
}

#[test]
fn overload_is_found_with_its_rates() {
    // 2 servers of 0.1 s carry 20/s.
    let model = Model { servers: 2, ..STATIONARY };
    let [overload, ..] = shares(model, 11);
    assert!(overload >= 0.99, "{overload}");
    let facts = facts(model, &mut Random(12));
    let [backlog] = &facts.backlogs[..] else { panic!("{facts:?}") };
    assert!((backlog.done_per_s - 20.0).abs() < 3.0, "{backlog:?}");
    assert!((backlog.planned_per_s - RATE).abs() < 5.0, "{backlog:?}");
    assert!((250..550).contains(&backlog.in_flight), "{backlog:?}");
}

/// One server of 42.6 ms answers 23.5/s: 141 of the 180 requests due in the second half of 12 s.
/// 39 are 2.2 standard errors of two Poisson numbers, and 3.3 of the answers alone.
#[test]
fn a_constant_rate_is_missed_by_fewer_requests_than_a_random_one() {
    let model = Model { servers: 1, service: 1.0 / 23.5, seconds: 12, even: true, ..STATIONARY };
    let [overload, ..] = shares(model, 13);
    assert!(overload >= 0.9, "{overload}");
}

#[test]
fn a_step_is_found_with_its_second_and_factor() {
    let model = Model { step: Some((23, 3.0)), servers: 30, ..STATIONARY };
    let [_, change, _] = shares(model, 21);
    assert!(change >= 0.9, "{change}");
    let facts = facts(model, &mut Random(22));
    let [change] = &facts.changes[..] else { panic!("{facts:?}") };
    assert!((change.at_s - 23.0).abs() <= 1.0, "{change:?}");
    let factor = change.after_ms / change.before_ms;
    assert!((2.4..3.6).contains(&factor), "{change:?}");
}

/// Five times the latency after half of 24 s, with seconds in which Plimsoll paused for 20 ms.
#[test]
fn a_clear_step_needs_no_longer_run() {
    let model = Model { seconds: 24, step: Some((12, 5.0)), servers: 60, ..STATIONARY };
    let [_, change, _] = shares(model, 41);
    assert!(change >= 0.95, "{change}");
    // A third longer after half of 24 s is a near miss.
    let [_, change, _] = shares(Model { step: Some((12, 1.33)), ..model }, 42);
    assert!(change <= 0.01, "{change}");
}

/// A server that answers in 20 ms is frozen for 1.5 s, at a rate that leaves ordinary silences.
#[test]
fn a_frozen_server_is_found_at_a_low_rate() {
    let model = Model { service: 0.02, stop: Some((11.3, 1.5)), ..STATIONARY };
    let [.., silence] = shares(model, 51);
    assert!(silence >= 0.95, "{silence}");
    let [.., silence] = shares(Model { stop: None, ..model }, 52);
    assert!(silence <= FALSE_ALARMS, "{silence}");
    // Short pauses of a busy host do not explain a long silence, long ones do.
    let [.., silence] = shares(Model { paused: 0.15, ..model }, 53);
    assert!(silence >= 0.9, "{silence}");
    let [.., silence] = shares(Model { paused: 0.5, ..model }, 54);
    assert!(silence <= FALSE_ALARMS, "{silence}");
}

/// Failures and requests without an end, by the tenths of a second in which they were sent.
#[test]
fn the_requests_sent_after_the_last_good_one_show_an_outage() {
    let bad = |tenths: &[u32], each: [u64; 2]| tenths.iter().map(|at| (*at, each)).collect();
    let last: Vec<u32> = (391..400).collect();
    for (sentence, last_good, bad, ended, expected) in [
        ("dead for 0.9 s", 390, bad(&last, [3, 0]), RunEnd::Complete, Some(27)),
        ("failures beside good ones", 399, bad(&[399], [30, 0]), RunEnd::Complete, None),
        ("hangs", 360, bad(&[361, 365, 370, 399], [0, 3]), RunEnd::Complete, Some(12)),
        ("interrupted", 360, bad(&[361, 365, 370, 399], [0, 3]), RunEnd::Interrupted, None),
        ("some have no end", 399, bad(&[10, 90, 170, 250, 330], [0, 3]), RunEnd::Complete, None),
        ("recovered", 399, bad(&[300, 301, 302], [9, 0]), RunEnd::Complete, None),
    ] {
        let failed = FailedAt { last_good: Some(last_good), bad, ..FailedAt::default() };
        let facts = facts_with(STATIONARY, &mut Random(61), failed, ended);
        let found = facts.outages.first().map(|outage| outage.failed);
        assert_eq!(found, expected, "{sentence}");
    }
}

/// Failures of 1.1 s of 40 s that began after 0.7 s were said to have been there from the start.
#[test]
fn failures_that_chance_does_not_spread_have_their_first_and_their_last_moment() {
    for (first, last, n, expected) in [
        (7, 17, 2_000, (Some(0.7), Some(1.8))),
        (7, 17, 10, (None, Some(1.8))),
        (0, 17, 1_000, (None, Some(1.8))),
        (390, 399, 1_000, (Some(39.0), None)),
        (2, 395, 100, (None, None)),
    ] {
        let kinds = [(FailedBy::Timeout, (first, last, n))].into();
        let failed = FailedAt { kinds, bad: [(first, [9, 0])].into(), ..FailedAt::default() };
        let facts = facts_with(STATIONARY, &mut Random(71), failed, RunEnd::Complete);
        let [span] = &facts.failures[..] else { panic!("{facts:?}") };
        assert_eq!((span.since_s, span.until_s), expected, "{first} {last} {n}");
    }
}

#[test]
fn a_standstill_is_found_with_its_start_and_length() {
    let model = Model { stop: Some((17.0, 2.0)), ..STATIONARY };
    let [.., silence] = shares(model, 31);
    assert!(silence >= 0.9, "{silence}");
    let facts = facts(model, &mut Random(32));
    let [silence] = &facts.silences[..] else { panic!("{facts:?}") };
    assert!((silence.start_s - 17.0).abs() <= 0.3, "{silence:?}");
    assert!((silence.length_s - 2.0).abs() <= 0.4, "{silence:?}");
    assert!(silence.in_flight > 0, "{silence:?}");
}
