//! Whole runs of one worker in virtual time. All times are milliseconds after the run's start.

use std::rc::Rc;

use plimsoll_measure::{Nanos, Outcome, StageId};

use crate::control::Control;
use crate::simulation_tests::harness::{CHAT, Harness, Simulated, at, simulate};
use crate::simulation_tests::{Reply, ScriptedTarget, respond_after};
use crate::worker_share::WorkerShare;

fn count(run: &Simulated, outcome: Outcome) -> usize {
    run.samples.iter().filter(|sample| sample.outcome == outcome).count()
}

#[test]
fn after_the_last_stage_responses_are_awaited() {
    let run = simulate(
        &format!("{CHAT}stages: '@100:100ms'\n"),
        ScriptedTarget::always(respond_after(299)),
    );
    assert_eq!((run.samples.len(), count(&run, Outcome::Completed)), (10, 10));
    // The last response comes at 389; the worker checks every 2 ms.
    assert_eq!(run.end, at(390));
    assert_eq!(run.output.end, at(100));
}

/// The first and the last second of each stage included.
#[test]
fn every_second_of_a_rate_has_its_arrivals() {
    for (stages, expected) in [
        ("@100:3s", [100, 100, 100]),
        ("w@50:1s,@100:2s", [50, 100, 100]),
        ("@100:2s,@20:1s", [100, 100, 20]),
        ("2:1s,@100:2s", [10, 100, 100]),
    ] {
        let profile = format!("{CHAT}stages: '{stages}'\n");
        let run = simulate(&profile, ScriptedTarget::always(respond_after(200)));
        let mut sent = [0; 3];
        for request in &run.requests {
            sent[usize::try_from(request.at.since(at(0)).as_u64() / 1_000_000_000).unwrap()] += 1;
        }
        assert_eq!(sent, expected, "{stages}");
    }
}

/// Handshakes that take four seconds delay an arrival by no more than the first of them, and do not
/// count as lateness of the generator.
#[test]
fn unanswered_handshakes_do_not_close_the_open_model() {
    let mut target = ScriptedTarget::always(respond_after(10));
    target.connect_time = Nanos::from_secs(4);
    let run = simulate(&format!("{CHAT}stages: '@20:5s'\n"), target);
    assert_eq!((count(&run, Outcome::Completed), run.arrivals[2]), (100, 0));
    assert_eq!(run.pacing_lag, Some(Nanos::ZERO));
    let longest = run.samples.iter().filter_map(|sample| sample.timeline.response_time()).max();
    assert!(longest.unwrap() < Nanos::from_millis(5_100), "{longest:?}");
}

#[test]
fn what_is_unanswered_when_the_drain_time_is_over_is_in_flight() {
    let profile = format!("{CHAT}stages: '@100:100ms'\n").replace("drain: 5s", "drain: 200ms");
    let target = ScriptedTarget::script([respond_after(299), respond_after(291)], Reply::Hang);
    let run = simulate(&profile, target);
    assert_eq!(run.end, at(300));
    // The response to the second, at 10 + 291 ms, comes a millisecond too late.
    assert_eq!((count(&run, Outcome::Completed), count(&run, Outcome::InFlight)), (1, 9));
    let open = run.samples.iter().filter(|sample| sample.outcome == Outcome::InFlight);
    assert!(open.clone().all(|sample| sample.timeline.finished.is_none()));
    assert_eq!(run.output.conversations.ended_early, 9);
}

#[test]
fn the_rest_of_the_schedule_is_accounted_for_when_a_backlog_outlasts_the_run() {
    let profile =
        format!("{CHAT}stages: '@50:1s'\nmax_in_flight: 1\n").replace("drain: 5s", "drain: 1s");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(99)));
    // One at a time, sent at 0, 99, ... 1980. The run is over at 2000: 20 have completed, and the
    // one of 1980 is in flight.
    assert_eq!((run.end, run.requests.len()), (at(2_000), 21));
    assert_eq!(run.requests[20].at, at(1_980));
    let counts = [Outcome::Completed, Outcome::InFlight, Outcome::NeverSent];
    assert_eq!(counts.map(|outcome| count(&run, outcome)), [20, 1, 29]);
    // The target is late, not the generator.
    assert_eq!(run.arrivals, [50, 11, 0]);
}

#[test]
fn arrivals_that_the_pacer_did_not_get_to_are_its_own_fault() {
    let harness =
        Harness::new(&format!("{CHAT}stages: '@100:100ms'\n"), ScriptedTarget::always(Reply::Hang));
    // No task ran at all.
    let run = harness.finish(at(100));
    assert_eq!(count(&run, Outcome::NeverSent), 10);
    assert_eq!(run.arrivals, [10, 0, 10]);
}

#[test]
fn an_interrupt_ends_the_run_at_the_next_tick() {
    let control = Control::new();
    let harness = Harness::new(
        &format!("{CHAT}stages: '@50:30s,3:30s'\n"),
        ScriptedTarget::always(respond_after(5)),
    );
    let (worker, of_task) = (Rc::clone(&harness.worker), control.clone());
    let end = harness.run(async {
        tokio::task::spawn_local(async move {
            worker.timer.sleep_until(at(720)).await;
            of_task.interrupt();
        });
        let (sender, _intervals) = std::sync::mpsc::channel();
        super::run_load(&harness.worker, WorkerShare::WHOLE, &control, sender).await
    });
    let run = harness.finish(end);
    // Ticks come every 50 ms. The arrivals of 0, 20, ... 740 were sent, and none after the tick.
    assert_eq!(run.output.end, at(750));
    let sent: Vec<_> = run.requests.iter().map(|request| request.at).collect();
    assert_eq!(sent, (0..38).map(|n| at(20 * n)).collect::<Vec<_>>());
    assert_eq!((run.samples.len(), count(&run, Outcome::Completed)), (38, 38));
    // While there is load, a worker checks every 50 ms whether its end has moved; its check at 750
    // came before the tick.
    assert_eq!(run.end, at(800));
}

#[test]
fn after_an_interrupt_responses_are_awaited_for_two_seconds_at_most() {
    let control = Control::new();
    control.interrupt();
    let harness =
        Harness::new(&format!("{CHAT}stages: '@100:30s'\n"), ScriptedTarget::always(Reply::Hang));
    let run = harness.run_load(&control);
    assert_eq!((run.output.end, run.end), (at(50), at(2_050)));
    assert_eq!(run.samples.len(), count(&run, Outcome::InFlight));
}

#[test]
fn turns_in_flight_are_integrated_by_stage() {
    let profile = format!("{CHAT}stages: '@100:100ms,@50:100ms'\n");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(10)));
    // The first stage always has one request in flight, the second half of the time.
    let [first, second] = run.output.in_flight[..] else { panic!("two stages") };
    let millis = |area: u128| area / 1_000_000;
    assert_eq!((millis(first.area), first.peak), (100, 1));
    assert_eq!((millis(second.area), second.peak), (50, 1));
    let of_stage =
        |stage| run.samples.iter().filter(|sample| sample.stage == StageId(stage)).count();
    assert_eq!((of_stage(0), of_stage(1)), (10, 5));
}

#[test]
fn a_turn_belongs_to_the_stage_of_its_intended_start() {
    let profile = format!("{CHAT}stages: 'w@100:50ms,@100:50ms'\nmax_in_flight: 1\n");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(40)));
    // The third is intended at 20 and sent at 80, in the second stage.
    let third = run.samples[2];
    assert_eq!(
        (third.stage, third.warmup, third.timeline.dispatched),
        (StageId(0), true, Some(at(80)))
    );
    assert!(run.samples[5..].iter().all(|sample| sample.stage == StageId(1) && !sample.warmup));
}

#[test]
fn intervals_are_sent_once_a_second() {
    let harness = Harness::new(
        &format!("{CHAT}stages: '@100:2500ms'\n"),
        ScriptedTarget::always(respond_after(5)),
    );
    let (sender, intervals) = std::sync::mpsc::channel();
    let control = Control::new();
    let load = super::run_load(&harness.worker, WorkerShare::WHOLE, &control, sender);
    let end = harness.run(load);
    let run = harness.finish(end);
    let intervals: Vec<_> = intervals.try_iter().collect();
    let at_s: Vec<_> = intervals.iter().map(|interval| interval.at.since(at(0))).collect();
    assert_eq!(at_s, [1, 2].map(Nanos::from_secs));
    let completed =
        |snapshot: &plimsoll_metrics::Snapshot| snapshot.total(|_| true).counters().completed;
    // The responses of 5, 15, ... 995 ms.
    assert_eq!(
        intervals.iter().map(|interval| completed(&interval.snapshot)).collect::<Vec<_>>(),
        [100, 100]
    );
    assert_eq!(completed(&run.output.snapshot), 50);
}
