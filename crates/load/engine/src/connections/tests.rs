//! Connections in virtual time: how many are opened, who waits for them, and for how long. All
//! times are milliseconds after the run's start, unless they say otherwise.

use plimsoll_measure::{Nanos, Outcome, Sample};

use crate::simulation_tests::harness::{CHAT, Simulated, at, simulate, times};
use crate::simulation_tests::{Costs, Reply, ScriptedTarget, respond_after};

const fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// A server that accepts each connection before it answers anything: 800 us an accept, 100 us a
/// request.
const ACCEPTS_FIRST: Costs =
    Costs { accept: us(800), handshake: Nanos::ZERO, request: us(100), pause: Nanos::ZERO };
/// A TLS server on one core.
const TLS: Costs =
    Costs { accept: Nanos::ZERO, handshake: us(1_300), request: us(50), pause: Nanos::ZERO };

fn connections(run: &Simulated) -> u32 {
    run.requests.iter().map(|request| request.connection).max().unwrap_or(0)
}

/// The percentile of the response times, in microseconds.
fn response_time_us(samples: &[Sample], percentile: usize) -> u64 {
    assert!(samples.iter().all(|sample| sample.outcome == Outcome::Completed));
    let mut times: Vec<_> =
        samples.iter().map(|sample| sample.timeline.response_time().unwrap()).collect();
    times.sort_unstable();
    times[times.len() * percentile / 100].as_u64() / 1_000
}

/// Runs the server at a rate with Poisson arrivals: the number of connections, and p50 and p99 of
/// the response time.
fn serve(costs: Costs, rate: u32, more: &str) -> (u32, u64, u64) {
    let profile = format!("{CHAT}stages: '@{rate}:900ms'\narrivals: poisson\n{more}");
    let run = simulate(&profile, ScriptedTarget::serial(costs));
    let samples = &run.samples;
    (connections(&run), response_time_us(samples, 50), response_time_us(samples, 99))
}

/// Every arrival without an idle connection used to open one: 6,750 connections for 6,750 requests,
/// and a p50 of 6.2 s.
#[test]
fn a_server_that_accepts_before_it_answers_is_not_drowned_in_connections() {
    let (connections, p50, p99) = serve(ACCEPTS_FIRST, 1_500, "");
    // With any fixed number that is large enough, the first request of each aside.
    let fixed = [2, 32].map(|n| {
        let (_, p50, p99) = serve(ACCEPTS_FIRST, 1_500, &format!("max_connections: {n}\n"));
        (n, p50, p99)
    });
    let best = fixed.iter().map(|(_, p50, _)| *p50).min().unwrap();
    assert!(p50 * 10 <= best * 12, "p50 {p50} us, p99 {p99} us; fixed {fixed:?}");
    assert!(connections <= 12, "{connections} connections; {fixed:?}");
}

#[test]
fn a_tls_server_is_not_drowned_in_handshakes() {
    let (connections, p50, p99) = serve(TLS, 5_000, "");
    let best = [8, 32].map(|n| serve(TLS, 5_000, &format!("max_connections: {n}\n")).1);
    let best = best.into_iter().min().unwrap();
    assert!(p50 * 10 <= best * 12, "p50 {p50} us, p99 {p99} us; fixed {best} us");
    assert!(connections <= 16, "{connections} connections");
}

/// Requests that arrive in a pause are answered late, but not because the target is slow: with as
/// many connections as arrivals it would do nothing but accept.
#[test]
fn a_pause_of_the_server_does_not_begin_an_avalanche() {
    for (pause_ms, most) in [(30, 16), (300, 250)] {
        let costs = Costs { pause: Nanos::from_millis(pause_ms), ..ACCEPTS_FIRST };
        let profile = format!("{CHAT}stages: '@1500:2s'\narrivals: poisson\n");
        let run = simulate(&profile, ScriptedTarget::serial(costs));
        let p50 = response_time_us(&run.samples, 50);
        assert!(connections(&run) <= most, "{pause_ms} ms: {} connections", connections(&run));
        assert!(p50 < 200, "{pause_ms} ms: p50 {p50} us, {} connections", connections(&run));
    }
}

#[test]
fn a_target_with_long_answers_gets_as_many_connections_as_it_needs() {
    let target = ScriptedTarget::always(respond_after(2_000));
    let run = simulate(&format!("{CHAT}stages: '@200:4s'\n"), target);
    // 200 per second for 2 s each.
    let needed = 400;
    assert!((needed..needed + 8).contains(&connections(&run)), "{}", connections(&run));
    let waits = run.samples.iter().filter_map(|sample| sample.connect.wait);
    assert_eq!(waits.max(), None, "an arrival every 5 ms: none has to wait");
}

#[test]
fn who_waits_for_a_connection_waits_in_order_and_is_charged_from_the_intended_start() {
    let target = ScriptedTarget::always(respond_after(30));
    let run = simulate(&format!("{CHAT}stages: '@100:50ms'\nmax_connections: 1\n"), target);
    // Same as with one slot, except that all of them are in flight at once.
    let expected = [(0, 0, 30), (10, 30, 60), (20, 60, 90), (30, 90, 120), (40, 120, 150)];
    assert_eq!(
        times(&run.samples),
        expected.map(|(start, sent, end)| (start, Some(sent), Some(end)))
    );
    let waits: Vec<_> = run.samples.iter().map(|sample| sample.connect.wait).collect();
    let ms = |ms| Some(Nanos::from_millis(ms));
    assert_eq!(waits, [None, ms(20), ms(40), ms(60), ms(80)]);
    for sample in &run.samples {
        assert_eq!(sample.timeline.service_time(), ms(30), "the wait is not the target's");
        assert_eq!(sample.timeline.connected, sample.timeline.dispatched);
    }
    assert_eq!(connections(&run), 1);
    assert_eq!(run.output.in_flight[0].peak, 4);
}

#[test]
fn a_freed_connection_serves_the_one_for_whom_another_is_being_opened() {
    let mut target = ScriptedTarget::always(respond_after(5));
    target.connect_time = Nanos::from_millis(50);
    let run = simulate(&format!("{CHAT}stages: '@100:20ms'\n"), target);
    let [first, second] = run.samples[..] else { panic!("{} samples", run.samples.len()) };
    // The first opens a connection in 50 ms, and has its answer at 55. For the second another is
    // opened, which would be ready at 62 or later.
    assert_eq!((first.timeline.dispatched, first.timeline.finished), (Some(at(0)), Some(at(55))));
    assert_eq!(first.connect.tcp, Some(Nanos::from_millis(50)));
    assert_eq!((second.timeline.connected, second.reused), (Some(at(55)), true));
    assert_eq!(second.connect.wait, Some(Nanos::from_millis(45)));
    assert_eq!((second.connect.tcp, second.timeline.finished), (None, Some(at(60))));
}

#[test]
fn a_request_that_a_closing_connection_never_answered_is_sent_once_more() {
    let profile = "content: {mode: scripted, script: [one, two]}\nturns: 2\nthink_time: 2s\nmax_tokens: 8\n\
         drain: 5s\nstages: '1:2500ms'\n";
    let target = || {
        let mut target = ScriptedTarget::always(respond_after(20));
        // The news that the connection is closed arrives when the second request has been sent.
        target.idle_timeout = Some(Nanos::from_millis(2_000));
        target
    };
    let run = simulate(profile, target());
    let [_, second, ..] = run.samples[..] else { panic!("{} samples", run.samples.len()) };
    assert_eq!(second.outcome, Outcome::Completed);
    assert_eq!(second.retried_after, Some(Nanos::from_secs(2)));
    assert_eq!(second.timeline.dispatched, Some(at(2_020)), "charged from the first attempt");
    assert_eq!(second.timeline.finished, Some(at(2_041)));
    let bodies: Vec<_> = run.requests.iter().map(|request| request.body.as_str()).collect();
    assert!(bodies[1] == bodies[2] && bodies[1].contains("two"), "the same request: {bodies:?}");

    let run = simulate(&format!("{profile}retry_reused: false\n"), target());
    assert!(matches!(run.samples[1].outcome, Outcome::Failed(_)));
    assert_eq!(run.samples[1].retried_after, None);
}

#[test]
fn a_request_on_a_new_connection_is_not_sent_again() {
    let reset = Reply::Reset { after: Nanos::from_millis(5) };
    let run = simulate(
        &format!("{CHAT}stages: '@10:100ms'\n"),
        ScriptedTarget::script([reset], respond_after(10)),
    );
    assert!(matches!(run.samples[0].outcome, Outcome::Failed(_)));
    assert_eq!(run.requests.len(), 1);
}

#[test]
fn a_request_that_the_target_may_have_worked_on_is_a_failure() {
    // The pause before the second request, how long the target has it, whether it is sent again.
    for (pause, worked, again) in [
        (2_000, 0, true),
        (2_000, 1, true),
        (2_000, 5, false),
        (2_000, 800, false),
        (2_000, 1_001, false),
        (50, 0, false),
        (0, 0, false),
        (0, 5, false),
    ] {
        let reset = Reply::Reset { after: Nanos::from_millis(worked) };
        let target = ScriptedTarget::script([respond_after(20), reset], respond_after(20));
        let profile = format!(
            "content: {{mode: scripted, script: [one, two]}}\nturns: 2\nthink_time: {pause}ms\n\
             max_tokens: 8\ndrain: 5s\nstages: '1:{}ms'\n",
            pause + 30
        );
        let run = simulate(&profile, target);
        let second = &run.samples[1];
        let sentence = format!("{worked} ms of work after {pause} ms");
        assert_eq!(second.outcome == Outcome::Completed, again, "{sentence}");
        assert_eq!(second.retried_after, again.then(|| Nanos::from_millis(pause)), "{sentence}");
    }
}

#[test]
fn a_connection_is_not_used_after_the_idle_limit() {
    let profile = format!("{CHAT}stages: '@1:3s'\nidle_limit: 950ms\n");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(20)));
    let used: Vec<_> = run.requests.iter().map(|request| request.connection).collect();
    // Idle for 980 ms each time.
    assert_eq!(used, [1, 2, 3]);
    let run = simulate(&profile.replace("950", "990"), ScriptedTarget::always(respond_after(20)));
    assert_eq!(connections(&run), 1);
}

#[test]
fn where_the_target_is_down_everyone_who_waits_learns_it() {
    let mut target = ScriptedTarget::always(Reply::Refuse);
    target.connect_time = Nanos::from_millis(1);
    let run = simulate(&format!("{CHAT}stages: '@1000:50ms'\n"), target);
    assert_eq!(run.samples.len(), 50);
    assert!(run.samples.iter().all(|sample| matches!(sample.outcome, Outcome::Failed(_))));
}

#[test]
fn a_request_that_never_gets_a_connection_times_out() {
    let profile = format!("{CHAT}stages: '@100:20ms'\nmax_connections: 1\ntimeout: 50ms\n");
    let run = simulate(&profile, ScriptedTarget::always(Reply::Hang));
    let second = run.samples[1];
    assert_eq!(second.outcome, Outcome::TimedOut);
    // The first gives up at 50; then a new connection is opened for the second, at 60 it gives up.
    assert_eq!(second.timeline.finished, Some(at(60)));
}
