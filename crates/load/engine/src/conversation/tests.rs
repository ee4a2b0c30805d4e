//! Conversations in virtual time. All times are milliseconds after the run's start.

use std::rc::Rc;

use plimsoll_measure::{ConversationKey, ErrorClass, Nanos, Outcome};
use plimsoll_workload::conversation_id;

use super::{ConversationEnd, ConversationStart, run_conversation};
use crate::control::Control;
use crate::request_timeout::LazyTimeout;
use crate::simulation_tests::harness::{CHAT, Harness, at, millis, simulate, times};
use crate::simulation_tests::{Reply, ScriptedTarget, respond_after};

/// Three turns with 100 ms of think time before the second and the third.
const THREE_TURNS: &str = "
content: {mode: scripted, script: [one, two, three]}
turns: 3
think_time: 100ms
max_tokens: 8
drain: 5s
";

/// Runs the first conversation of a user who is active from the start up to `end`.
fn converse(harness: &Harness, end: u64) -> ConversationEnd {
    let worker = &harness.worker;
    let mut conversation = worker.run.workload.conversation(ConversationKey::iteration(0, 0), None);
    let connections = Rc::clone(&worker.connections);
    let mut timeout = LazyTimeout::new(&worker.clock);
    let mut start = ConversationStart::closed(at(0), at(end));
    harness.run(run_conversation(worker, &mut conversation, &connections, &mut timeout, &mut start))
}

fn three_turns(target: ScriptedTarget) -> Harness {
    Harness::new(&format!("{THREE_TURNS}stages: '1:10s'\n"), target)
}

#[test]
fn a_turn_is_intended_when_the_think_time_after_the_one_before_is_over() {
    let harness = three_turns(ScriptedTarget::always(respond_after(20)));
    let end = converse(&harness, 10_000);
    let think_time = Nanos::from_millis(100);
    assert_eq!(end, ConversationEnd { at: at(260), think_time, sent: true, retry_after: None });
    let run = harness.finish(end.at);
    let expected = [0, 120, 240].map(|start| (start, Some(start), Some(start + 20)));
    assert_eq!(times(&run.samples), expected);
    assert_eq!((run.output.conversations.finished, run.output.conversations.ended_early), (1, 0));
}

#[test]
fn each_turn_carries_the_replies_to_the_ones_before() {
    let harness = three_turns(ScriptedTarget::always(respond_after(20)));
    converse(&harness, 10_000);
    let requests = harness.simulation.target.requests();
    let count = |text: &str| -> Vec<usize> {
        requests.iter().map(|request| request.body.matches(text).count()).collect()
    };
    assert_eq!(count(r#""role":"user""#), [1, 2, 3]);
    assert_eq!(count(r#""role":"assistant","content":"fine""#), [0, 1, 2]);
    let id = conversation_id(harness.worker.run.ids, ConversationKey::iteration(0, 0));
    let ids: Vec<_> = requests.iter().map(|request| request.id.clone()).collect();
    assert_eq!(ids, [0, 1, 2].map(|turn| format!("{}-{turn}", id.as_str())));
}

#[test]
fn a_tool_call_is_followed_by_its_result() {
    const CALL: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c7","type":"function","function":{"name":"weather","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let harness = three_turns(ScriptedTarget::script([Reply::Body(CALL)], respond_after(20)));
    converse(&harness, 10_000);
    let requests = harness.simulation.target.requests();
    let dialogue = concat!(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c7","type":"function","#,
        r#""function":{"name":"weather","arguments":"{}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"c7","content":"ok"},{"role":"user","#,
    );
    let has_it: Vec<_> = requests.iter().map(|request| request.body.contains(dialogue)).collect();
    assert_eq!(has_it, [false, true, true], "{requests:?}");
}

#[test]
fn the_first_turn_that_does_not_complete_ends_the_conversation() {
    for (reply, outcome, ended) in [
        (Reply::Reset { after: Nanos::from_millis(7) }, Outcome::Failed(ErrorClass::Reset), 127),
        (Reply::Respond { after: Nanos::from_millis(9), status: 429 }, Outcome::Rejected(429), 129),
    ] {
        let target = ScriptedTarget::script([respond_after(20), reply], respond_after(20));
        let profile = format!("{THREE_TURNS}stages: '1:10s'\nretry_reused: false\n");
        let harness = Harness::new(&profile, target);
        let end = converse(&harness, 10_000);
        assert_eq!((end.at, end.sent, end.retry_after), (at(ended), true, None));
        let run = harness.finish(end.at);
        let outcomes: Vec<_> = run.samples.iter().map(|sample| sample.outcome).collect();
        assert_eq!(outcomes, [Outcome::Completed, outcome]);
        assert_eq!(
            (run.output.conversations.finished, run.output.conversations.ended_early),
            (0, 1)
        );
    }
}

#[test]
fn no_turn_starts_at_the_end_of_the_users_time_or_later() {
    // The third turn would be intended at 240 ms.
    for (end, turns) in [(240, 2), (241, 3), (120, 1), (121, 2)] {
        let harness = three_turns(ScriptedTarget::always(respond_after(20)));
        // The user is ready again when the turn that is not started would have been.
        let cut_at = if turns < 3 { at(120 * turns as u64) } else { at(260) };
        assert_eq!(converse(&harness, end).at, cut_at, "end {end}");
        assert_eq!(harness.finish(at(10_000)).samples.len(), turns, "end {end}");
    }
}

#[test]
fn an_interrupt_while_the_user_thinks_ends_the_conversation() {
    let harness = three_turns(ScriptedTarget::always(respond_after(20)));
    let worker = Rc::clone(&harness.worker);
    let end = harness.run(async {
        tokio::task::spawn_local(async move {
            worker.timer.sleep_until(at(60)).await;
            worker.end.set(at(60));
        });
        let worker = &harness.worker;
        let key = ConversationKey::iteration(0, 0);
        let mut conversation = worker.run.workload.conversation(key, None);
        let mut timeout = LazyTimeout::new(&worker.clock);
        let mut start = ConversationStart::closed(at(0), at(10_000));
        run_conversation(worker, &mut conversation, &worker.connections, &mut timeout, &mut start)
            .await
    });
    assert_eq!(end, ConversationEnd::before_turn(at(120)));
    assert_eq!(harness.finish(end.at).samples.len(), 1);
}

#[test]
fn a_request_is_cut_off_exactly_at_its_time_limit() {
    let target = ScriptedTarget::script([Reply::Hang, respond_after(49)], Reply::Hang);
    let run = simulate(&format!("{CHAT}stages: '1:120ms'\ntimeout: 50ms\n"), target);
    // Closed model: each turn starts when the one before is over.
    let expected = [(0, 50), (50, 99), (99, 149)];
    assert_eq!(times(&run.samples), expected.map(|(start, end)| (start, Some(start), Some(end))));
    let outcomes: Vec<_> = run.samples.iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, [Outcome::TimedOut, Outcome::Completed, Outcome::TimedOut]);
    assert_eq!(run.end, at(150), "looked for every 2 ms from 120 on");
}

#[test]
fn a_user_who_thinks_holds_no_permit() {
    let profile = format!("{THREE_TURNS}stages: '@20:100ms'\nmax_in_flight: 1\n");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(20)));
    // Arrivals at 0 and 50; their turns alternate.
    let sent: Vec<_> = run.requests.iter().map(|request| request.at).collect();
    assert_eq!(sent[..2], [0, 50].map(at));
    // The second turn of the first is intended at 120, after the stage's end at 100: it is not
    // started.
    assert_eq!(run.samples.len(), 2);

    let profile = format!("{THREE_TURNS}stages: '@20:100ms,1:1s'\nmax_in_flight: 1\n");
    let harness = Harness::new(&profile, ScriptedTarget::always(respond_after(80)));
    let run = harness.run_load(&Control::new());
    let open = |sample: &&plimsoll_measure::Sample| {
        [0, 1].map(ConversationKey::arrival).contains(&sample.conversation)
    };
    let open: Vec<_> = run.samples.iter().filter(open).copied().collect();
    // The arrival of 50 waits for the permit until 80. The second turns are intended at 180 and
    // 260, the third at 360 and 440; each has the permit when it wants it.
    let expected = [
        (0, 0, 80),
        (50, 80, 160),
        (180, 180, 260),
        (260, 260, 340),
        (360, 360, 440),
        (440, 440, 520),
    ];
    assert_eq!(times(&open), expected.map(|(start, sent, end)| (start, Some(sent), Some(end))));
}

#[test]
fn the_times_of_a_stream_are_those_of_its_events() {
    let reply =
        Reply::Stream { first: Nanos::from_millis(20), gap: Nanos::from_millis(5), events: 4 };
    let run = simulate(
        &format!("{CHAT}stream: true\nstages: '@10:100ms'\n"),
        ScriptedTarget::always(reply),
    );
    let [sample] = run.samples[..] else { panic!("{} samples", run.samples.len()) };
    assert_eq!(sample.outcome, Outcome::Completed);
    let line = sample.timeline;
    assert_eq!((line.first_token, line.last_token), (Some(at(20)), Some(at(35))));
    assert_eq!((line.ttft().map(millis), line.finished), (Some(20), Some(at(35))));
    let gaps = sample.gaps;
    assert_eq!((gaps.count, millis(gaps.sum), millis(gaps.max)), (3, 15, 5));
    assert_eq!((sample.events, gaps.largest_burst), (4, 1));
}

#[test]
fn opening_a_connection_is_part_of_the_service_time() {
    let mut target = ScriptedTarget::always(respond_after(20));
    target.connect_time = Nanos::from_millis(3);
    let run = simulate(&format!("{CHAT}stages: '1:30ms'\n"), target);
    // The second request uses the connection of the first.
    let expected = [(0, 23), (23, 43)];
    assert_eq!(times(&run.samples), expected.map(|(start, end)| (start, Some(start), Some(end))));
    let [first, second] = run.samples[..] else { panic!("{} samples", run.samples.len()) };
    assert_eq!((first.reused, first.timeline.connected), (false, Some(at(3))));
    assert_eq!(first.connect.tcp, Some(Nanos::from_millis(3)));
    assert_eq!((second.reused, second.timeline.connected), (true, Some(at(23))));
    assert_eq!(second.connect.tcp, None);
}

#[test]
fn the_time_limit_counts_from_the_dispatch() {
    let profile = format!("{CHAT}stages: '@100:20ms'\nmax_in_flight: 1\ntimeout: 50ms\n");
    let run = simulate(&profile, ScriptedTarget::always(Reply::Hang));
    let expected = [(0, Some(0), Some(50)), (10, Some(50), Some(100))];
    assert_eq!(times(&run.samples), expected);
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::TimedOut));
}

#[test]
fn a_later_turn_that_finds_no_permit_is_dropped_where_the_plan_says_so() {
    let profile = format!("{THREE_TURNS}stages: '@10:200ms'\nmax_in_flight: 1\noverflow: drop\n");
    let target = ScriptedTarget::script([respond_after(60), respond_after(90)], respond_after(1));
    let run = simulate(&profile, target);
    // The arrival of 100 holds the permit until 190, so the second turn of the first conversation,
    // intended at 160, is never sent. The other's second turn would start after the end, at 290.
    let expected = [(0, Some(0), Some(60)), (100, Some(100), Some(190)), (160, None, None)];
    assert_eq!(times(&run.samples), expected);
    assert_eq!(run.samples[2].outcome, Outcome::NeverSent);
    assert_eq!(run.output.conversations.ended_early, 2);
}
