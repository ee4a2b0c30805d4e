//! Tests of the validity checks: each bound alone, on an otherwise sound run.

use super::*;
use crate::bounded_figure::Refusal;
use crate::catalog::{Metric, Rates};
use crate::distribution::Distribution;
use crate::health::{CalibrationQuote, DisturbedWindow, Lag};
use crate::results::{DistributionSummary, Group};
use plimsoll_measure::Nanos;

/// A run on half-idle workers, well within every bound.
fn sound() -> (InstrumentHealth, Evidence) {
    let health = InstrumentHealth {
        planned_arrivals: Some(1_000),
        achieved_arrivals: Some(1_000),
        worker_cpu_shares: vec![0.3, 0.5],
        worker_wait_shares: vec![0.0, 0.1],
        kernel_timestamps: Some(true),
        sink_overflowed: Some(0),
        steal_share: Some(0.001),
        throttled_share: Some(0.0),
        clock_step_ns: Some(20),
        fd_peak: Some(70),
        fd_limit: Some(1_024),
        ports_peak: Some(70),
        ephemeral_ports: Some(28_232),
        ..InstrumentHealth::default()
    };
    (health, Evidence { ended: RunEnd::Complete, ..Evidence::default() })
}

type Case = (InstrumentHealth, Evidence);

fn judge(
    case: Case,
    change: impl FnOnce(&mut InstrumentHealth, &mut Evidence),
) -> [Vec<String>; 2] {
    let (mut health, mut evidence) = case;
    change(&mut health, &mut evidence);
    let whats = |reasons: Vec<Reason>| reasons.into_iter().map(|reason| reason.what).collect();
    let Assessment { validity, warnings } = judge_health(&health, &evidence, &Results::default());
    match validity {
        Validity::Valid => [Vec::new(), whats(warnings)],
        Validity::Invalid(reasons) => [whats(reasons), whats(warnings)],
    }
}

/// The violations of a run.
fn violations(
    case: Case,
    change: impl FnOnce(&mut InstrumentHealth, &mut Evidence),
) -> Vec<String> {
    let [violations, _] = judge(case, change);
    violations
}

/// The warnings of a run, which must be valid.
fn warnings(case: Case, change: impl FnOnce(&mut InstrumentHealth, &mut Evidence)) -> Vec<String> {
    let [violations, warnings] = judge(case, change);
    assert!(violations.is_empty(), "{violations:?}");
    warnings
}

#[test]
fn a_sound_run_is_valid_and_so_is_one_of_unknown_health() {
    assert!(warnings(sound(), |_, _| {}).is_empty());
    assert!(warnings(sound(), |health, _| *health = InstrumentHealth::default()).is_empty());
    assert!(warnings(sound(), |_, evidence| evidence.ended = RunEnd::Interrupted).is_empty());
}

#[test]
fn each_broken_bound_is_named() {
    let unbalanced = ("8:60s simple".to_owned(), Counters { scheduled: 1, ..Counters::default() });
    let violations = |change: fn(&mut InstrumentHealth, &mut Evidence)| violations(sound(), change);
    assert_eq!(self::violations(sound(), |_, e| e.unbalanced.push(unbalanced)), ["accounting"]);
    assert_eq!(violations(|_, e| e.ended = RunEnd::Unfinished), ["end of the run"]);
    assert_eq!(violations(|_, e| e.ended = RunEnd::Aborted), ["end of the run"]);
    assert_eq!(violations(|h, _| h.sink_overflowed = Some(1)), ["results.jsonl"]);
    assert_eq!(violations(|h, _| h.clock_step_ns = Some(4_000_000)), ["clock"]);
    assert_eq!(
        violations(|h, _| h.generator_errors.extend([("gen_fd_exhaustion".to_owned(), 3)])),
        ["ran out of file descriptors"]
    );
}

/// T-21: on virtual machines the host is busy at times; what counts is whether it mattered.
#[test]
fn causes_without_effect_are_no_violation() {
    assert!(
        warnings(sound(), |h: &mut InstrumentHealth, _: &mut Evidence| {
            h.steal_share = Some(0.22);
            h.throttled_share = Some(0.1);
            h.worker_cpu_shares = vec![0.99];
            h.worker_wait_shares = vec![0.9];
            h.kernel_timestamps = Some(false);
            h.pacing_lag_ms = Some(Lag { p50: 5.0, p99: 500.0, max: 900.0, mean: 9.0 });
            h.achieved_arrivals = Some(500);
        })
        .is_empty()
    );
}

/// A measured stage with a median response time of 300 ms.
fn stage(name: &str) -> Group {
    let mut times = Distribution::default();
    (0..500).for_each(|_| times.record(Nanos::from_millis(300)));
    let times = DistributionSummary::from_distribution(&times).unwrap();
    Group {
        stage: Some(name.to_owned()),
        rates: Rates { achieved_rate_per_s: Some(50.0), ..Rates::default() },
        distributions: [(Metric::ResponseTime.key().to_owned(), times)].into(),
        ..Group::default()
    }
}

fn judge_stages(by_stage: Vec<Group>) -> Vec<Reason> {
    let (mut health, evidence) = sound();
    health.steal_share = Some(0.22);
    let window = DisturbedWindow { length_s: 1.4, ..DisturbedWindow::default() };
    health.disturbed_windows = vec![window];
    let results = Results { by_stage, ..Results::default() };
    match judge_health(&health, &evidence, &results).validity {
        Validity::Valid => Vec::new(),
        Validity::Invalid(reasons) => reasons,
    }
}

#[test]
fn a_headline_figure_of_which_nothing_is_known_makes_the_run_invalid() {
    let limited = |name, bound: f64| {
        let mut stage = stage(name);
        let times = stage.distributions.get_mut("response_time_ms").unwrap();
        times.bound_ms.insert("p50".to_owned(), bound);
        times.refused.insert("p50".to_owned(), Refusal::Generator);
        stage
    };
    assert!(judge_stages(vec![stage("x"), stage("y")]).is_empty());
    let reasons = judge_stages(vec![stage("x"), limited("y", 300.0)]);
    assert_eq!(reasons.len(), 1);
    assert_eq!(reasons[0].what, "the median response time of stage `y`");
    assert_eq!(reasons[0].measured, "300 ms, all of which may be the generator's");
    let causes = ["Plimsoll was paused once, for 1.40 s in all", "steal 22.0 %"];
    assert_eq!(reasons[0].causes, causes);
    // 180 of 300 ms are the target's: a figure with a limit. A warm-up is judged for nothing.
    assert!(judge_stages(vec![limited("y", 120.0)]).is_empty());
    let warmup = Group { warmup: true, ..limited("w", 300.0) };
    assert!(judge_stages(vec![warmup]).is_empty());
}

#[test]
fn an_open_stage_that_missed_more_than_one_arrival_in_a_hundred_makes_the_run_invalid() {
    let missed = |late| {
        let mut stage = stage("@50:4s");
        stage.counters.arrivals_planned = 200;
        stage.counters.arrivals_late_by_generator = late;
        stage
    };
    assert!(judge_stages(vec![missed(2)]).is_empty());
    let reasons = judge_stages(vec![missed(3)]);
    assert_eq!(reasons[0].what, "the rate of stage `@50:4s`");
    let measured = "3 of 200 planned requests (1.5 %) were not sent in time for it";
    assert_eq!(reasons[0].measured, measured);
}

/// 1,000 requests, with this many rows written, left out and lost.
fn rows(
    written: u64,
    left_out: u64,
    lost: u64,
) -> impl FnOnce(&mut InstrumentHealth, &mut Evidence) {
    move |health, evidence| {
        evidence.scheduled = Some(1_000);
        health.sink_offered = Some(1_000);
        health.sink_written = Some(written);
        health.sink_left_out = Some(left_out);
        health.sink_least_share_one_in = Some(if left_out > 0 { 8 } else { 1 });
        health.sink_overflowed = Some(lost);
    }
}

#[test]
fn sampled_rows_give_a_warning_and_unaccounted_rows_a_violation() {
    assert!(warnings(sound(), rows(1_000, 0, 0)).is_empty());
    assert_eq!(warnings(sound(), rows(400, 600, 0)), ["results.jsonl is a sample"]);
    assert_eq!(violations(sound(), rows(400, 599, 1)), ["results.jsonl"]);
    assert_eq!(violations(sound(), rows(400, 599, 0)), ["accounting of results.jsonl"]);
    assert_eq!(
        violations(sound(), |health: &mut InstrumentHealth, evidence: &mut Evidence| {
            rows(1_000, 0, 0)(health, evidence);
            evidence.scheduled = Some(999);
        }),
        ["accounting of results.jsonl"]
    );
}

#[test]
fn limits_that_change_no_figure_yet_are_warnings() {
    assert_eq!(warnings(sound(), |h, _| h.ports_peak = Some(28_000)), ["local ports"]);
    let failed = CalibrationQuote { failed: 1, ..CalibrationQuote::default() };
    let earlier = warnings(sound(), |h, _| h.calibration = Some(failed));
    assert!(earlier.is_empty(), "it says nothing of this run");
    assert_eq!(warnings(sound(), |h, _| h.fd_peak = Some(922)), ["file descriptors"]);
}

#[test]
fn requests_that_opened_a_connection_are_named_unless_the_profile_asks_for_it() {
    let openings = |requests, opened, needed| {
        move |_: &mut InstrumentHealth, evidence: &mut Evidence| {
            let name = "@100:10s".to_owned();
            let (answered, cut_off) = (requests, 0);
            let peak = 0;
            let stage = StageOpenings { name, requests, opened, cut_off, answered, needed, peak };
            evidence.openings = vec![stage];
        }
    };
    assert!(warnings(sound(), openings(1_000, 10, 0.0)).is_empty());
    assert!(warnings(sound(), openings(10_000, 100, 0.0)).is_empty());
    assert!(warnings(sound(), openings(500, 110, 100.0)).is_empty(), "each user opened one");
    let named = ["requests that opened a connection"];
    assert_eq!(warnings(sound(), openings(1_000, 11, 0.0)), named);
    assert_eq!(warnings(sound(), openings(500, 111, 100.0)), named);
    // What is slow needs as many connections as there are requests in flight.
    let fix = |peak| {
        let (mut health, mut evidence) = sound();
        openings(960, 464, 0.0)(&mut health, &mut evidence);
        evidence.openings[0].peak = peak;
        judge_health(&health, &evidence, &Results::default()).warnings.remove(0).fix
    };
    assert!(fix(490).contains("up to 490 were in flight at once") && !fix(490).contains("closes"));
    assert!(fix(20).contains("look whether the target closes connections"));
    let all_failed = warnings(sound(), |health, evidence| {
        openings(1_000, 1_000, 0.0)(health, evidence);
        evidence.openings[0].answered = 0;
    });
    assert!(all_failed.is_empty(), "no service time contains anything");
    let planned = warnings(sound(), |health, evidence| {
        openings(1_000, 500, 0.0)(health, evidence);
        health.planned_reconnects = Some(true);
    });
    assert!(planned.is_empty());
}
