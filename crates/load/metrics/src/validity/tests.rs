//! Tests of the validity checks: each bound alone, on an otherwise sound run.

use super::*;
use crate::health::{CalibrationQuote, LittlesLaw};

fn late(p99: f64) -> Lag {
    Lag { p50: 0.0, p99, max: p99, mean: 0.0 }
}

/// An open run on half-idle workers, well within every bound.
fn sound() -> (InstrumentHealth, Evidence) {
    let health = InstrumentHealth {
        planned_arrivals: Some(1_000),
        achieved_arrivals: Some(1_000),
        dispatch_lag_ms: Some(late(0.2)),
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
    let evidence = Evidence {
        ended: RunEnd::Complete,
        open_model: true,
        service_time_p50_ms: Some(20.0),
        ..Evidence::default()
    };
    (health, evidence)
}

/// A closed run of a minute in which 20 ms of service took 0.1 ms of the generator's time.
fn closed() -> (InstrumentHealth, Evidence) {
    let (health, evidence) = sound();
    let stage = ClosedStage {
        name: "8:60s".to_owned(),
        duration_s: 60.0,
        unfinished: 0.0,
        generator: Lag { p50: 0.1, p99: 0.3, max: 2.0, mean: 0.1 },
        target: Lag { p50: 20.0, p99: 40.0, max: 90.0, mean: 20.0 },
    };
    let law = LittlesLaw { stage: "8:60s".to_owned(), in_flight: 8.0, rate_times_time: 7.99 };
    let health = InstrumentHealth {
        planned_arrivals: None,
        achieved_arrivals: None,
        littles_law: vec![law],
        ..health
    };
    (health, Evidence { open_model: false, closed: vec![stage], ..evidence })
}

type Case = (InstrumentHealth, Evidence);

fn judge(
    case: Case,
    change: impl FnOnce(&mut InstrumentHealth, &mut Evidence),
) -> [Vec<String>; 2] {
    let (mut health, mut evidence) = case;
    change(&mut health, &mut evidence);
    let whats = |reasons: Vec<Reason>| reasons.into_iter().map(|reason| reason.what).collect();
    let Assessment { validity, warnings } = judge_health(&health, &evidence);
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
    assert!(warnings(closed(), |_, _| {}).is_empty());
    assert!(warnings(sound(), |health, _| *health = InstrumentHealth::default()).is_empty());
    assert!(warnings(sound(), |_, evidence| evidence.ended = RunEnd::Interrupted).is_empty());
}

#[test]
fn each_broken_bound_is_named() {
    let unbalanced =
        ("8:60s simple".to_owned(), Accounting { scheduled: 1, ..Accounting::default() });
    let violations = |change: fn(&mut InstrumentHealth, &mut Evidence)| violations(sound(), change);
    assert_eq!(self::violations(sound(), |_, e| e.unbalanced.push(unbalanced)), ["accounting"]);
    assert_eq!(violations(|_, e| e.ended = RunEnd::Unfinished), ["end of the run"]);
    assert_eq!(violations(|_, e| e.ended = RunEnd::Aborted), ["end of the run"]);
    assert_eq!(violations(|h, _| h.sink_overflowed = Some(1)), ["results.jsonl"]);
    assert_eq!(violations(|h, _| h.achieved_arrivals = Some(989)), ["arrivals in time"]);
    assert_eq!(violations(|h, _| h.fd_peak = Some(922)), ["file descriptors"]);
    assert_eq!(violations(|h, _| h.steal_share = Some(0.06)), ["steal"]);
    assert_eq!(violations(|h, _| h.throttled_share = Some(0.02)), ["CPU quota"]);
    assert_eq!(violations(|h, _| h.clock_step_ns = Some(4_000_000)), ["clock"]);
    assert_eq!(
        violations(|h, _| h.generator_errors.extend([("gen_fd_exhaustion".to_owned(), 3)])),
        ["gen_fd_exhaustion"]
    );
    let busy_and_late = |h: &mut InstrumentHealth, _: &mut Evidence| {
        h.dispatch_lag_ms = Some(late(2.1));
        h.worker_cpu_shares = vec![0.4, 0.85];
    };
    assert_eq!(violations(busy_and_late), ["lateness of the generator", "saturated worker"]);
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
    let more_than_planned = |health: &mut InstrumentHealth, evidence: &mut Evidence| {
        rows(1_000, 0, 0)(health, evidence);
        evidence.scheduled = Some(999);
    };
    assert_eq!(violations(sound(), more_than_planned), ["accounting of results.jsonl"]);
}

#[test]
fn lateness_of_the_open_model_is_compared_with_the_service_time() {
    let late_by = |p99, service| {
        violations(sound(), |health, evidence| {
            health.dispatch_lag_ms = Some(late(p99));
            evidence.service_time_p50_ms = service;
        })
    };
    assert!(late_by(1.9, Some(20.0)).is_empty());
    assert_eq!(late_by(2.1, Some(20.0)), ["lateness of the generator"]);
    assert!(late_by(0.9, None).is_empty());
    assert_eq!(late_by(1.1, None), ["lateness of the generator"]);
}

#[test]
fn waiting_for_the_limit_in_flight_is_not_the_generators_lateness() {
    let queued = |health: &mut InstrumentHealth, _: &mut Evidence| {
        health.dispatch_lag_ms = Some(late(5_000.0));
        health.pacing_lag_ms = Some(late(0.1));
    };
    assert!(warnings(sound(), queued).is_empty());
}

/// A closed run with `mean` and `p99` ms between requests and `service` ms in the target.
fn cycle(mean: f64, p99: f64, service: f64) -> impl FnOnce(&mut InstrumentHealth, &mut Evidence) {
    move |health, evidence| {
        health.worker_cpu_shares = vec![0.99];
        evidence.closed[0].generator = Lag { p50: mean, p99, max: p99, mean };
        evidence.closed[0].target =
            Lag { p50: service, p99: service * 2.0, max: 9.0, mean: service };
    }
}

#[test]
fn a_closed_loop_at_full_speed_is_valid_and_warned_of_as_limited_by_the_instrument() {
    // wrk against nginx: 64 connections, 150,000 requests/s, half of the cycle in each.
    assert_eq!(warnings(closed(), cycle(0.21, 1.9, 0.21)), ["limited by the instrument"]);
    // Not saturated, but woken late each time: 40 % of the cycle.
    let woken = |health: &mut InstrumentHealth, evidence: &mut Evidence| {
        cycle(0.02, 0.1, 0.03)(health, evidence);
        health.worker_cpu_shares = vec![0.3];
    };
    assert_eq!(warnings(closed(), woken), ["limited by the instrument"]);
    // Turns up to 15 ms late are no violation where the target's p99 is 40 ms.
    assert_eq!(warnings(closed(), cycle(4.0, 15.0, 20.0)), ["limited by the instrument"]);
}

#[test]
fn a_closed_loop_whose_cycle_is_mostly_the_generators_is_invalid() {
    assert_eq!(violations(closed(), cycle(1.1, 5.0, 0.2)), ["limited by the instrument"]);
    assert_eq!(violations(closed(), cycle(21.0, 30.0, 20.0)), ["limited by the instrument"]);
    // Squeezed by a quota: mostly quick, but stopped for 80 ms in every 100.
    let squeezed = violations(closed(), cycle(4.0, 80.0, 1.0));
    assert_eq!(squeezed, ["limited by the instrument", "lateness of the generator"]);
}

#[test]
fn a_worker_that_wants_a_core_and_gets_a_fifth_is_invalid_in_either_model() {
    let squeeze = |cpu, wait| {
        move |health: &mut InstrumentHealth, _: &mut Evidence| {
            health.worker_cpu_shares = vec![cpu];
            health.worker_wait_shares = vec![wait];
        }
    };
    assert_eq!(violations(closed(), squeeze(0.2, 0.78)), ["squeezed worker"]);
    assert_eq!(violations(sound(), squeeze(0.2, 0.78)), ["squeezed worker"]);
    // Target and generator on one core, each with its half.
    assert_eq!(warnings(closed(), squeeze(0.45, 0.5)), ["limited by the instrument"]);
    // A nearly idle generator on a busy machine.
    assert!(warnings(closed(), squeeze(0.04, 0.44)).is_empty());
}

#[test]
fn a_saturated_closed_loop_without_kernel_time_stamps_is_invalid() {
    let without_timestamps = |cpu: f64| {
        violations(closed(), |health, _| {
            health.kernel_timestamps = Some(false);
            health.worker_cpu_shares = vec![cpu];
            health.worker_wait_shares = vec![0.1];
        })
    };
    assert_eq!(without_timestamps(0.85), ["saturated worker"]);
    assert!(without_timestamps(0.75).is_empty());
}

#[test]
fn littles_law_is_judged_on_long_and_complete_stages() {
    let off = |change: fn(&mut Evidence)| {
        violations(closed(), |health, evidence| {
            health.littles_law[0].rate_times_time = 7.8;
            change(evidence);
        })
    };
    assert_eq!(off(|_| {}), ["Little's law"]);
    assert!(off(|evidence| evidence.closed[0].duration_s = 4.0).is_empty());
    assert!(off(|evidence| evidence.closed[0].unfinished = 0.02).is_empty());
    assert!(off(|evidence| evidence.ended = RunEnd::Interrupted).is_empty());
    assert!(off(|evidence| evidence.closed.clear()).is_empty());
}

#[test]
fn limits_that_change_no_figure_yet_are_warnings() {
    assert_eq!(warnings(sound(), |h, _| h.ports_peak = Some(28_000)), ["local ports"]);
    let failed = CalibrationQuote { failed: 1, ..CalibrationQuote::default() };
    assert_eq!(warnings(sound(), |h, _| h.calibration = Some(failed)), ["calibration"]);
    let stall = Lag { max: 300.0, ..late(0.2) };
    assert_eq!(
        warnings(sound(), |h, _| h.pacing_lag_ms = Some(stall)),
        ["the generator stood still"]
    );
}
