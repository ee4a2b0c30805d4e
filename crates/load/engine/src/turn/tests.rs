//! Measurement error of turns, in virtual time. The worker is stopped while the target continues;
//! the times without the generator's part must equal the script's. All times are milliseconds after
//! the run's start.

use plimsoll_measure::{LateRead, Moment, Nanos, Outcome, Sample, StreamShape};

use super::{OpenTurn, TurnMeasurement};
use crate::control::Control;
use crate::loop_watch::Pause;
use crate::simulation_tests::harness::{CHAT, Harness, Simulated, at, millis};
use crate::simulation_tests::{Reply, ScriptedTarget, respond_after};

const STREAM: &str =
    "content: {mode: sized, approx_input_tokens: 8}\nmax_tokens: 20\nstream: true\n";

/// A run whose worker is stopped between each two moments.
fn paused(profile: &str, target: ScriptedTarget, pauses: &[(u64, u64)]) -> Simulated {
    let harness = Harness::new(profile, target);
    for &(from, to) in pauses {
        harness.simulation.pause(at(from), at(to));
    }
    harness.run_load(&Control::new())
}

fn offset(moment: Option<Moment>) -> u64 {
    millis(moment.unwrap().since(Moment::EPOCH))
}

/// When each turn was to start, was sent and ended, without the generator's part.
fn without_generator(samples: &[Sample]) -> Vec<(u64, u64, u64)> {
    samples
        .iter()
        .map(|sample: &Sample| {
            let line = sample.timeline_without_generator();
            (offset(Some(line.intended)), offset(line.dispatched), offset(line.finished))
        })
        .collect()
}

/// Start and end of requests of `service` that are due every `gap`, in so many slots: each takes
/// the slot that is free first.
fn queue(requests: u64, gap: u64, service: u64, slots: usize) -> Vec<(u64, u64, u64)> {
    let mut free = vec![0; slots];
    (0..requests)
        .map(|n| {
            free.sort_unstable();
            let start = free[0].max(n * gap);
            free[0] = start + service;
            (n * gap, start, start + service)
        })
        .collect()
}

/// Checks the instants without the generator's part. Requests that a pause affected may have ended
/// earlier than the truth.
fn assert_limits(samples: &[Sample], truth: &[(u64, u64, u64)]) {
    for (sample, (found, truth)) in samples.iter().zip(without_generator(samples).iter().zip(truth))
    {
        assert_eq!((found.0, found.1), (truth.0, truth.1));
        assert!(
            found.2 == truth.2 || (sample.affected && found.2 < truth.2),
            "{found:?} {truth:?}"
        );
    }
}

/// Every request in flight has one, so rarely used data is boxed.
#[test]
fn an_open_turn_is_no_larger_than_it_must_be() {
    let (all, measurement) = (size_of::<OpenTurn>(), size_of::<TurnMeasurement>());
    assert!(all <= measurement + 168, "{all} bytes, of which {measurement} are measured");
}

#[test]
fn a_pause_in_the_open_model_is_the_generators_part() {
    let target = ScriptedTarget::always(respond_after(30));
    let run = paused(&format!("{CHAT}stages: '@100:500ms'\n"), target, &[(100, 200)]);
    // The ten arrivals of the pause were sent at its end.
    assert!(run.samples[10..20].iter().all(|s| s.timeline.dispatched == Some(at(200))));
    let added: Vec<_> = run.samples.iter().map(|s| millis(s.generator.dispatch)).collect();
    let during = (0..10).map(|n| 100 - 10 * n);
    let expected = [0; 10].into_iter().chain(during).chain([0; 30]).collect::<Vec<_>>();
    assert_eq!(added, expected);
    // Responses that came in the pause (to the requests of 80 and 90) have their own stamps.
    assert_limits(&run.samples, &queue(50, 10, 30, 50));
    assert_eq!(run.arrivals, [50, 50, 0]);
}

#[test]
fn a_queue_that_a_pause_builds_up_at_the_limit_is_the_generators_part() {
    // Three quarters of the slots' time are used, so the backlog of the pause lasts for long.
    let target = ScriptedTarget::always(respond_after(15));
    let profile = format!("{CHAT}stages: '@100:500ms'\nmax_in_flight: 2\n");
    let run = paused(&profile, target, &[(100, 200)]);
    assert!(run.samples[25].timeline.dispatch_lag().unwrap() > Nanos::from_millis(20));
    assert_limits(&run.samples, &queue(50, 10, 15, 2));
}

#[test]
fn a_queue_that_the_target_builds_up_at_the_limit_is_not() {
    let target = || ScriptedTarget::always(respond_after(30));
    let profile = format!("{CHAT}stages: '@100:500ms'\nmax_in_flight: 2\n");
    let run = paused(&profile, target(), &[]);
    assert!(run.samples.iter().all(|sample| sample.generator.dispatch == Nanos::ZERO));
    assert_eq!(without_generator(&run.samples), queue(50, 10, 30, 2));
    // With a pause, its part is the generator's, in this and every later request.
    let run = paused(&profile, target(), &[(100, 200)]);
    assert_limits(&run.samples, &queue(50, 10, 30, 2));
    let last = millis(run.samples[49].generator.dispatch);
    assert!((60..=100).contains(&last), "{last}");
}

#[test]
fn arrivals_that_pauses_keep_from_their_stage_are_the_generators_part() {
    // The target needs 8 of 10 ms. The generator runs in 3 of 20 ms, and sends some 50 of 100.
    let pauses: Vec<_> = (0..100).map(|n| (n * 20 + 3, n * 20 + 20)).collect();
    let profile =
        format!("{CHAT}stages: '@100:1s'\nmax_in_flight: 1\n").replace("drain: 5s", "drain: 100ms");
    let run = paused(&profile, ScriptedTarget::always(respond_after(8)), &pauses);
    let [planned, in_stage, late] = run.arrivals;
    assert!(planned == 100 && in_stage < 60, "{in_stage} in the stage");
    assert!(late >= 95 - in_stage, "{in_stage} in the stage, {late} kept from it");
    assert!(run.samples.iter().any(|sample| sample.outcome == Outcome::NeverSent));
}

#[test]
fn arrivals_that_the_target_keeps_from_their_stage_are_not() {
    let profile =
        format!("{CHAT}stages: '@100:1s'\nmax_in_flight: 1\n").replace("drain: 5s", "drain: 200ms");
    let run = paused(&profile, ScriptedTarget::always(respond_after(100)), &[(305, 310)]);
    // Ten of them, and the pause does not cause another.
    assert_eq!(run.arrivals, [100, 10, 0]);
    let run = paused(&profile, ScriptedTarget::always(Reply::Hang), &[(305, 310)]);
    assert_eq!(run.arrivals, [100, 1, 0]);
}

#[test]
fn a_pause_in_a_closed_loop_is_the_part_of_the_turn_that_it_delayed() {
    let target = ScriptedTarget::always(respond_after(20));
    let run = paused(&format!("{CHAT}stages: '2:500ms'\n"), target, &[(95, 195)]);
    // The responses of 100 were read at 195.
    let delayed: Vec<_> = run
        .samples
        .iter()
        .filter(|sample| sample.generator.dispatch > Nanos::ZERO)
        .map(|sample| (offset(Some(sample.timeline.intended)), millis(sample.generator.dispatch)))
        .collect();
    assert_eq!(delayed, [(100, 95), (100, 95)]);
    let cycles = without_generator(&run.samples);
    assert!(cycles.iter().all(|(start, sent, end)| (sent - start, end - sent) == (0, 20)));
}

#[test]
fn follow_up_turns_of_the_open_model_are_late_by_the_pause_only() {
    let profile = "content: {mode: scripted, script: [one, two]}\nturns: 2\nthink_time: 50ms\n\
        max_tokens: 8\ndrain: 5s\nstages: '@1:1s'\n";
    let run = paused(profile, ScriptedTarget::always(respond_after(20)), &[(60, 160)]);
    assert_eq!(without_generator(&run.samples), [(0, 0, 20), (70, 70, 90)]);
    assert_eq!(run.samples[1].timeline.dispatched, Some(at(160)));
}

/// The first of twenty events at 20 ms, the others every 10 ms.
fn stream(pause: (u64, u64)) -> Sample {
    let (first, gap) = (Nanos::from_millis(20), Nanos::from_millis(10));
    let target = ScriptedTarget::always(Reply::Stream { first, gap, events: 20 });
    let run = paused(&format!("{STREAM}stages: '@1:1s'\n"), target, &[pause]);
    run.samples[0]
}

#[test]
fn the_first_token_of_a_late_read_may_have_come_since_the_last_look() {
    let sample = stream((15, 155));
    // Events of 20 to 150 were read at 155, and the kernel stamped the last of them.
    assert_eq!(sample.timeline.first_token, Some(at(150)));
    assert_eq!(sample.gaps.largest_burst, 14);
    let bound = offset(sample.timeline_without_generator().first_token);
    // The worker looked at 12 or 14, with its beat. The truth is 20.
    assert!((12..=20).contains(&bound), "{bound}");
    let own = sample.generator;
    assert_eq!([own.first_byte, own.first_output_token], [own.first_token; 2]);
    assert_eq!([own.last_token, own.finished, own.dispatch], [Nanos::ZERO; 3]);
}

#[test]
fn a_pause_in_the_middle_of_a_stream_moves_neither_its_first_token_nor_its_end() {
    let sample = stream((75, 125));
    let line = sample.timeline;
    assert_eq!(line, sample.timeline_without_generator());
    assert_eq!(line.first_token, Some(at(20)));
    assert_eq!(line.finished, Some(at(210)));
}

#[test]
fn the_end_of_a_stream_that_is_read_late_has_its_own_stamp() {
    let sample = stream((195, 300));
    let line = sample.timeline_without_generator();
    assert_eq!((line.finished, sample.timeline.finished), (Some(at(210)), Some(at(210))));
    // Events of 200 and 210: the last of them may have come before the end of the response.
    assert!((190..=210).contains(&offset(line.last_token)), "{:?}", line.last_token);
}

#[test]
fn a_pause_affects_requests_until_its_burst_is_answered() {
    let target = ScriptedTarget::always(respond_after(30));
    let run = paused(&format!("{CHAT}stages: '@100:500ms'\n"), target, &[(100, 200)]);
    let [Pause { from, to, .. }] = run.output.pauses.kept[..] else {
        panic!("{:?}", run.output.pauses)
    };
    // The worker looked at 98, for its beat.
    assert_eq!((from, to), (at(98), at(200)));
    // Ten come at 200, and are answered at 230.
    let affected = run.samples.iter().filter(|sample| sample.affected);
    let mut intended: Vec<_> = affected.map(|sample| sample.timeline.intended).collect();
    intended.sort_unstable();
    assert_eq!(intended, (10..=22).map(|n| at(n * 10)).collect::<Vec<_>>());
}

#[test]
fn without_a_request_in_flight_the_beat_stops_and_a_late_start_shows_the_pause() {
    let target = ScriptedTarget::always(respond_after(10));
    let run = paused(&format!("{CHAT}stages: '@2:2s'\n"), target, &[(480, 600)]);
    let [Pause { from, to, .. }] = run.output.pauses.kept[..] else {
        panic!("{:?}", run.output.pauses)
    };
    assert_eq!((from, to), (at(500), at(600)));
    assert_eq!(without_generator(&run.samples), queue(4, 500, 10, 4));
}

#[test]
fn a_late_read_of_a_stream_is_noted_with_its_gap() {
    use plimsoll_protocol::DeltaKind;
    use plimsoll_transport::RxTime;

    let mut measurement = TurnMeasurement::new(at(0), Vec::new());
    let read = |at, lag, earlier| RxTime {
        read_lag: Some(Nanos::from_millis(lag)),
        first_earlier_by: Nanos::from_millis(earlier),
        ..RxTime::exact(at)
    };
    for (moment, lag, earlier, events) in
        [(20, 0, 0, 1), (30, 0, 0, 1), (70, 5, 39, 4), (80, 0, 0, 1)]
    {
        measurement.received(100, read(at(moment), lag, earlier));
        (0..events).for_each(|_| measurement.content(DeltaKind::Text, at(moment)));
    }
    // A late read without content, before the end.
    measurement.received(10, read(at(95), 5, 14));
    measurement.end();
    // The read did not end with content, so the last event may have arrived as early.
    let earlier = Nanos::from_millis(39);
    let late = LateRead { gap: Some(1), events: 4, earlier_by: earlier, last_earlier_by: earlier };
    assert_eq!(measurement.late_reads, [late]);
    assert_eq!(measurement.sample.generator.finished, Nanos::ZERO);
}

/// The shapes of ten streams of 100 events, one each 20 ms, while the worker is stopped between
/// these moments.
fn shapes(pauses: &[(u64, u64)]) -> Vec<Option<StreamShape>> {
    let (first, gap) = (Nanos::from_millis(200), Nanos::from_millis(20));
    let target = ScriptedTarget::always(Reply::Stream { first, gap, events: 100 });
    let run = paused(&format!("{STREAM}stages: '@10:1s'\n"), target, pauses);
    run.samples.iter().map(|sample| sample.shape).collect()
}

#[test]
fn streams_that_the_generator_read_late_again_and_again_say_so() {
    assert_eq!(shapes(&[]), [Some(StreamShape::Intact); 10]);
    // One stop, of a tenth of each stream, changes nothing.
    assert_eq!(shapes(&[(1_100, 1_300)]), [Some(StreamShape::Intact); 10]);
    // Stopped for 150 of every 500 ms.
    let stops: Vec<_> = (0..8).map(|n| (n * 500 + 105, n * 500 + 255)).collect();
    assert_eq!(shapes(&stops), [Some(StreamShape::ReadLate); 10]);
}
