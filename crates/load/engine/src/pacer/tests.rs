//! Tests of the pacer in virtual time. All times are milliseconds after the run's start.

use std::rc::Rc;

use plimsoll_measure::{ConversationKey, Nanos, Outcome};
use tokio::task::yield_now;

use super::run_pacer;
use crate::control::Control;
use crate::simulation_tests::harness::{CHAT, Harness, at, millis, simulate, times};
use crate::simulation_tests::{Reply, ScriptedTarget, respond_after};

#[test]
fn arrivals_are_sent_exactly_when_they_are_intended() {
    let target = ScriptedTarget::always(respond_after(25));
    let run = simulate(&format!("{CHAT}stages: '@100:50ms'"), target);
    // 100 per second: one every 10 ms. The target's 25 ms do not matter.
    let expected = [0, 10, 20, 30, 40].map(|start| (start, Some(start), Some(start + 25)));
    assert_eq!(times(&run.samples), expected);
    assert_eq!(
        run.requests.iter().map(|request| request.at).collect::<Vec<_>>(),
        [0, 10, 20, 30, 40].map(at)
    );
    assert_eq!(run.arrivals, [5, 5, 0]);
    assert_eq!(run.pacing_lag, Some(Nanos::ZERO));
}

#[test]
fn a_rising_rate_is_followed_to_the_nanosecond() {
    let target = ScriptedTarget::always(respond_after(1));
    let run = simulate(&format!("{CHAT}stages: '@0..200:1s'"), target);
    // The integral of 200 t is 100 t^2, so arrival n is due at sqrt(n / 100) s.
    assert_eq!(run.samples.len(), 100);
    for (n, sample) in run.samples.iter().enumerate() {
        let due = (n as f64 / 100.0).sqrt() * 1e9;
        let sent = sample.timeline.dispatched.unwrap().as_nanos() as f64;
        assert!((sent - due).abs() <= 1.0, "arrival {n} at {sent} ns, not {due}");
    }
}

#[test]
fn at_the_limit_arrivals_wait_and_response_time_counts_from_their_intended_start() {
    let target = ScriptedTarget::always(respond_after(30));
    let run = simulate(&format!("{CHAT}stages: '@100:50ms'\nmax_in_flight: 1\n"), target);
    // One at a time, 30 ms each.
    let expected = [(0, 0, 30), (10, 30, 60), (20, 60, 90), (30, 90, 120), (40, 120, 150)];
    assert_eq!(
        times(&run.samples),
        expected.map(|(start, sent, end)| (start, Some(sent), Some(end)))
    );
    assert_eq!(
        [0, 1, 2, 3, 4].map(|n: usize| millis(run.samples[n].timeline.response_time().unwrap())),
        [30, 50, 70, 90, 110]
    );
    // Waiting for the target is not the generator's lateness.
    assert_eq!(run.arrivals, [5, 2, 0]);
    assert_eq!(run.pacing_lag, Some(Nanos::ZERO));
}

#[test]
fn permits_are_granted_in_the_order_of_the_arrivals() {
    let slow_first = ScriptedTarget::script([respond_after(35)], respond_after(20));
    let run = simulate(&format!("{CHAT}stages: '@100:50ms'\nmax_in_flight: 2\n"), slow_first);
    // Permits become free at 30 (the second request ends), 35 (the first ends), 50 and 55.
    let expected = [(0, 0, 35), (10, 10, 30), (20, 30, 50), (30, 35, 55), (40, 50, 70)];
    assert_eq!(
        times(&run.samples),
        expected.map(|(start, sent, end)| (start, Some(sent), Some(end)))
    );
}

#[test]
fn arrivals_beyond_the_limit_are_dropped_where_the_plan_says_so() {
    let target = ScriptedTarget::always(respond_after(25));
    let profile = format!("{CHAT}stages: '@100:100ms'\nmax_in_flight: 1\noverflow: drop\n");
    let run = simulate(&profile, target);
    // The request of 0 occupies the permit until 25: 10 and 20 are dropped. The next ones are
    // sent at 30, 60 and 90.
    let sent: Vec<_> = run.requests.iter().map(|request| request.at).collect();
    assert_eq!(sent, [0, 30, 60, 90].map(at));
    let never: Vec<_> =
        run.samples.iter().filter(|sample| sample.outcome == Outcome::NeverSent).copied().collect();
    assert_eq!(times(&never), [10, 20, 40, 50, 70, 80].map(|start| (start, None, None)));
    assert_eq!(run.arrivals, [10, 4, 0]);
}

#[test]
fn a_late_pacer_releases_all_that_is_due_at_once_and_reports_its_lag() {
    let target = ScriptedTarget::always(respond_after(5));
    let harness = Harness::new(&format!("{CHAT}stages: '@100:2s'\n"), target);
    harness.run(async {
        harness.worker.timer.sleep_until(at(1_000)).await;
        let pacer = tokio::task::spawn_local(run_pacer(Rc::clone(&harness.worker), 0));
        // More arrivals than the pacer releases at once: it lets other tasks run in between.
        while harness.worker.stats().in_flight() < 101 {
            yield_now().await;
        }
        assert_eq!(harness.simulation.now(), at(1_000));
        pacer.abort();
    });
    let run = harness.finish(at(1_000));
    // Arrivals 0, 10, ... 1000 ms; all in time, because their stage lasts until 2 s. The others
    // were never sent.
    assert_eq!(run.arrivals, [200, 101, 99]);
    assert_eq!(run.pacing_lag, Some(Nanos::from_secs(1)));
    let late: Vec<_> =
        run.samples.iter().take(3).map(|sample| sample.timeline.dispatched).collect();
    assert_eq!(late, [Some(at(1_000)); 3]);
}

#[test]
fn an_arrival_that_is_released_after_its_stage_is_not_in_time() {
    let target = ScriptedTarget::always(respond_after(5));
    let harness = Harness::new(&format!("{CHAT}stages: '@100:100ms,@1:10s'\n"), target);
    harness.run(async {
        harness.worker.timer.sleep_until(at(95)).await;
        let pacer = tokio::task::spawn_local(run_pacer(Rc::clone(&harness.worker), 0));
        harness.worker.timer.sleep_until(at(99)).await;
        pacer.abort();
    });
    assert_eq!(harness.finish(at(99)).arrivals, [20, 10, 10]);

    let target = ScriptedTarget::always(respond_after(5));
    let harness = Harness::new(&format!("{CHAT}stages: '@100:100ms,@1:10s'\n"), target);
    harness.run(async {
        harness.worker.timer.sleep_until(at(100)).await;
        let pacer = tokio::task::spawn_local(run_pacer(Rc::clone(&harness.worker), 0));
        harness.worker.timer.sleep_until(at(101)).await;
        pacer.abort();
    });
    // Only the eleventh is in time: it is the first of the second stage, at 100 ms. Ten were late,
    // and the last nine were never sent.
    assert_eq!(harness.finish(at(101)).arrivals, [20, 1, 19]);
}

#[test]
fn the_last_row_of_a_trace_has_time_to_be_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.jsonl");
    // The second and the third come at the same time, and the file is not sorted.
    let rows = [0, 400, 100, 200, 200]
        .map(|ms| format!("{{\"timestamp\": {ms}, \"input_length\": 8, \"output_length\": 8}}\n"));
    for (rows, last) in [(&rows[..], 400), (&rows[..1], 0), (&rows[3..], 0)] {
        std::fs::write(&file, rows.concat()).unwrap();
        let profile = format!("trace: {{file: '{}', format: mooncake}}", file.display());
        let target = ScriptedTarget::always(respond_after(15));
        let harness = Harness::new(&format!("{CHAT}stages: trace\n{profile}\n"), target);
        harness.simulation.pause(at(last), at(last + 3));
        let run = harness.run_load(&Control::new());
        let count = rows.len() as u64;
        assert_eq!(run.arrivals, [count, count, 0], "planned, in time, late");
    }
}

#[test]
fn each_arrival_has_its_number_as_its_key() {
    let target = ScriptedTarget::script([Reply::Refuse], respond_after(5));
    let run = simulate(&format!("{CHAT}stages: '@100:30ms'"), target);
    let keys: Vec<_> = run.samples.iter().map(|sample| sample.conversation).collect();
    assert_eq!(keys, [0, 1, 2].map(ConversationKey::arrival));
    // A refused connection does not slow the load down.
    assert_eq!(run.requests.iter().map(|request| request.at).collect::<Vec<_>>(), [10, 20].map(at));
}

#[test]
fn no_arrival_is_planned_after_the_last_request_that_may_be_sent() {
    for (profile, sent, last) in [
        ("stages: '@100:10s'\nmax_requests: 7", 7, 60),
        ("stages: '@100:50ms'\nmax_requests: 7", 5, 40),
        // The ten of the warm-up are not limited.
        ("stages: 'w@100:100ms,@100:10s'\nmax_requests: 7", 17, 160),
        // Two turns each: 0, 10 and 20 ms, and two of the second turns at 15 and 25 ms.
        ("stages: '@100:10s'\nturns: 2\nmax_requests: 5", 5, 25),
    ] {
        let target = ScriptedTarget::always(respond_after(15));
        let run = simulate(&format!("{CHAT}{profile}\n"), target);
        assert_eq!((run.requests.len(), run.samples.len()), (sent, sent), "{profile}");
        assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Completed), "{profile}");
        assert_eq!(
            run.requests.iter().map(|request| request.at).max(),
            Some(at(last)),
            "{profile}"
        );
    }
}
