//! Virtual users in virtual time. All times are milliseconds after the run's start.

use plimsoll_measure::{ConversationKey, ErrorClass, Moment, Nanos, Outcome, StageId, TargetId};

use super::SharedConversations;
use crate::control::Control;
use crate::simulation_tests::harness::{CHAT, Harness, Simulated, simulate, times};
use crate::simulation_tests::{Reply, ScriptedTarget, respond_after};

fn sent(run: &Simulated) -> Vec<(u64, u32)> {
    let millis =
        |request: &crate::simulation_tests::ReceivedRequest| request.at.as_nanos() / 1_000_000;
    run.requests.iter().map(|request| (millis(request), request.connection)).collect()
}

#[test]
fn a_user_starts_the_next_conversation_when_the_last_one_is_over() {
    let run =
        simulate(&format!("{CHAT}stages: '1:100ms'\n"), ScriptedTarget::always(respond_after(30)));
    // At 120 the stage is over; the request of 90 is awaited. One connection serves all of them.
    assert_eq!(sent(&run), [(0, 1), (30, 1), (60, 1), (90, 1)]);
    let expected = [0, 30, 60, 90].map(|start| (start, Some(start), Some(start + 30)));
    assert_eq!(times(&run.samples), expected);
    let keys: Vec<_> = run.samples.iter().map(|sample| sample.conversation).collect();
    assert_eq!(keys, [0, 1, 2, 3].map(|n| ConversationKey::iteration(0, n)));
    assert_eq!(run.output.conversations.finished, 4);
    assert_eq!(run.arrivals, [0, 0, 0], "the closed model has no arrivals");
}

#[test]
fn each_user_has_its_own_connection_and_numbers() {
    let run =
        simulate(&format!("{CHAT}stages: '2:50ms'\n"), ScriptedTarget::always(respond_after(40)));
    assert_eq!(sent(&run), [(0, 1), (0, 2), (40, 1), (40, 2)]);
    let mut keys: Vec<_> = run.samples.iter().map(|sample| sample.conversation).collect();
    keys.sort_by_key(|key| key.0);
    let mut expected =
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(u, n)| ConversationKey::iteration(u, n));
    expected.sort_by_key(|key| key.0);
    assert_eq!(keys, expected);
}

#[test]
fn users_join_when_the_line_of_the_stage_says_so() {
    let run = simulate(
        &format!("{CHAT}stages: '1..3:200ms'\n"),
        ScriptedTarget::always(respond_after(500)),
    );
    // The line crosses 1.5 after a quarter and 2.5 after three quarters of the stage.
    assert_eq!(sent(&run), [(0, 1), (50, 2), (150, 3)]);
}

#[test]
fn a_user_who_cannot_even_send_backs_off_before_the_next_attempt() {
    let run = simulate(&format!("{CHAT}stages: '1:35ms'\n"), ScriptedTarget::always(Reply::Refuse));
    assert_eq!(times(&run.samples), [0, 10, 20, 30].map(|start| (start, Some(start), Some(start))));
    let refused = Outcome::Failed(ErrorClass::ConnectRefused);
    assert!(run.samples.iter().all(|sample| sample.outcome == refused));
    let refused = &run.output.causes["connect_refused"];
    assert_eq!((run.output.causes.len(), refused.count), (1, 4));
    assert_eq!(refused.first, [(TargetId(0), "scripted".to_owned())]);
}

#[test]
fn a_user_goes_on_at_once_when_the_target_is_back() {
    let target = ScriptedTarget::script([Reply::Refuse, Reply::Refuse], respond_after(4));
    let run = simulate(&format!("{CHAT}stages: '1:28ms'\n"), target);
    assert_eq!(sent(&run), [(20, 1), (24, 1)]);
}

#[test]
fn after_a_reset_the_user_goes_on_at_once_over_a_new_connection() {
    let reset = Reply::Reset { after: Nanos::from_millis(5) };
    let target = ScriptedTarget::script([respond_after(10), reset], respond_after(10));
    let run = simulate(&format!("{CHAT}stages: '1:30ms'\nretry_reused: false\n"), target);
    assert_eq!(sent(&run), [(0, 1), (10, 1), (15, 2), (25, 2)]);
    assert_eq!(
        run.samples.iter().map(|sample| sample.reused).collect::<Vec<_>>(),
        [false, true, false, true]
    );
}

#[test]
fn a_connection_is_kept_over_stages_that_touch_and_not_over_a_pause() {
    let target = || ScriptedTarget::always(respond_after(20));
    let run = simulate(&format!("{CHAT}stages: '1:20ms,1:20ms'\n"), target());
    assert_eq!(sent(&run), [(0, 1), (20, 1)]);
    let run = simulate(&format!("{CHAT}stages: '1:20ms,@10:30ms,1:20ms'\n"), target());
    // The arrival of the open stage has the second connection.
    assert_eq!(sent(&run), [(0, 1), (20, 2), (50, 3)]);
}

/// Requests in each second of a run against a target that answers after 20 ms.
fn per_second(profile: &str, reply: Reply) -> Vec<usize> {
    let run =
        simulate(&format!("max_tokens: 8\ndrain: 5s\n{profile}\n"), ScriptedTarget::always(reply));
    let last = run.requests.last().map_or(0, |request| request.at.as_nanos() / 1_000_000_000);
    let in_second = |second: u64| move |at: &u64| at / 1_000 == second;
    let all: Vec<_> = sent(&run).into_iter().map(|(at, _)| at).collect();
    (0..=last)
        .map(|second| all.iter().copied().filter(|at| in_second(second)(at)).count())
        .collect()
}

/// A user sends a request every 1.02 s, whether the next one belongs to the same conversation or
/// not, whether it was answered, and up to the last second.
#[test]
fn users_who_think_load_every_second_of_their_time_alike() {
    let (one, three) = (
        "content: {mode: sized, approx_input_tokens: 8}",
        "content: {mode: scripted, script: [a, b, c]}\nturns: 3",
    );
    let http = "protocol: http\nhttp: {method: GET, path: /}";
    let (answer, refusal) =
        (respond_after(20), Reply::Respond { after: Nanos::from_millis(20), status: 429 });
    for (scenario, stages, reply, expected) in [
        (one, "2:3s", answer, &[2, 2, 2][..]),
        (three, "2:3s", answer, &[2, 2, 2]),
        (three, "4:5s", answer, &[4, 4, 4, 4, 4]),
        (three, "4:5s", refusal, &[4, 4, 4, 4, 4]),
        (http, "4:5s", answer, &[4, 4, 4, 4, 4]),
        ("protocol: http\nhttp: {method: GET, path: /}\nturns: 2", "3:3s", answer, &[3, 3, 3]),
        // The users of a stage that others follow go on, and the new ones start at its beginning.
        (three, "2:3s,5:2s", answer, &[2, 2, 2, 5, 5]),
        (three, "2:3s,1:2s,2:1s", answer, &[2, 2, 2, 1, 1, 2]),
        // The line crosses 1.5 after 1.5 s, and 0.5 after 4.5 s.
        (three, "2..0:6s", answer, &[2, 2, 1, 1, 1]),
        // A user of the third stage starts at its beginning, however long he would have thought.
        (one, "1:1010ms,@1:1s,1:1s", answer, &[1, 1, 1]),
    ] {
        let profile = format!("{scenario}\nthink_time: 1s\nstages: '{stages}'");
        assert_eq!(per_second(&profile, reply), expected, "{profile}");
    }
}

/// A 429 of the scripted target asks to wait for two seconds, and a 503 until a date that is two
/// seconds after its own.
#[test]
fn a_user_waits_as_long_as_a_refusal_asks_where_the_plan_honours_it() {
    for (status, profile, starts, waits) in [
        (429, "retry_after: honour", &[0, 2_010][..], (1, 2.0)),
        (503, "retry_after: honour", &[0, 2_010], (1, 2.0)),
        (429, "", &[0, 10, 1_010, 2_010], (0, 0.0)),
        // The wait ends with the run.
        (429, "retry_after: honour\nstages: '1:1500ms'", &[0], (1, 1.49)),
    ] {
        let refusal = Reply::Respond { after: Nanos::from_millis(10), status };
        let stages = if profile.contains("stages") { "" } else { "stages: '1:2500ms'\n" };
        let target = ScriptedTarget::script([refusal], respond_after(1_000));
        let run = simulate(&format!("{CHAT}{stages}{profile}\n"), target);
        let sent: Vec<_> = sent(&run).into_iter().map(|(at, _)| at).collect();
        assert_eq!(sent, starts, "{status}, {profile}");
        let counted = run.output.conversations;
        assert_eq!(counted.retry_after_waits, waits.0, "{profile}");
        assert!((counted.retry_after_wait_s - waits.1).abs() < 1e-9, "{counted:?}");
        // No response time contains the wait.
        assert!(
            run.samples.iter().all(|s| s.timeline.response_time() <= Some(Nanos::from_secs(1)))
        );
    }
}

#[test]
fn the_run_ends_when_its_requests_are_used_up() {
    let target = ScriptedTarget::always(respond_after(30));
    let run = simulate(&format!("{CHAT}stages: '2:10s'\nmax_requests: 5\n"), target);
    let sent: Vec<_> = sent(&run).into_iter().map(|(at, _)| at).collect();
    assert_eq!(sent, [0, 0, 30, 30, 60]);
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Completed));
    // The turns of a conversation are requests, too.
    let target = ScriptedTarget::always(respond_after(30));
    let run = simulate(&format!("{CHAT}stages: '1:10s'\nturns: 4\nmax_requests: 6\n"), target);
    assert_eq!((run.requests.len(), run.samples.len()), (6, 6));
}

/// The completions that a stage's throughput counts, and its length in milliseconds.
fn counted(run: &Simulated) -> (u64, u64) {
    let all = run.output.snapshot.total(|_| true);
    let length = run.output.end.since(Moment::EPOCH);
    (all.counters().completed_in_stage, length.as_u64() / 1_000_000)
}

/// Four users, answers of 30 ms: the last of 14 requests are sent at 90 ms and answered at 120 ms,
/// so 14 answers took that long. An open load does not wait for the last answer: 20 of 100 a second
/// take 200 ms, and with answers of 70 ms, 14 are answered by then.
#[test]
fn a_limit_of_requests_ends_the_time_and_the_count_of_answers_together() {
    let profile = format!("{CHAT}stages: '4:10s'\nmax_requests: 14\n");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(30)));
    assert_eq!(run.samples.len(), 14);
    assert_eq!(counted(&run), (14, 120));
    let profile = format!("{CHAT}stages: '@100:10s'\nmax_requests: 20\n");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(70)));
    assert_eq!(run.samples.len(), 20);
    assert_eq!(counted(&run), (14, 200));
}

/// Answers of 60 ms: the second of the warm-up of 100 ms ends at 120 ms. The one request is sent
/// then, and answered at 180 ms.
#[test]
fn a_limit_of_requests_leaves_the_answers_of_the_warm_up_out() {
    let profile = format!("{CHAT}stages: 'w1:100ms,1:10s'\nmax_requests: 1\n");
    let run = simulate(&profile, ScriptedTarget::always(respond_after(60)));
    let measured = run.output.snapshot.total(|key| key.stage == StageId(1));
    assert_eq!(measured.counters().completed_in_stage, 1);
    let at = |ms| Moment::EPOCH + Nanos::from_millis(ms);
    assert_eq!((run.output.begin, run.output.end), (Some(at(120)), at(180)));
}

/// The first request is never answered, the others of the two users after 30 ms: four of them take
/// 120 ms, and the one that times out later takes nothing from their rate, nor is it counted as in
/// flight later: 2 for these 120 ms.
#[test]
fn a_request_without_an_answer_does_not_make_the_time_of_the_others_longer() {
    let target = ScriptedTarget::script([Reply::Hang], respond_after(30));
    let profile = format!("{CHAT}stages: '2:10s'\ntimeout: 500ms\nmax_requests: 5\n");
    let run = simulate(&profile, target);
    assert_eq!(counted(&run), (4, 120));
    let stage = &run.output.in_flight[0];
    // The clock goes on by a nanosecond between an answer and the next request.
    assert_eq!((stage.peak, (stage.area + 4) / 1_000_000), (2, 2 * 120));
}

#[test]
fn an_interrupt_ends_the_time_and_the_count_of_answers_together() {
    let profile = format!("{CHAT}stages: '4:10s'\n");
    let harness = Harness::new(&profile, ScriptedTarget::always(respond_after(30)));
    let control = Control::new();
    // The first tick, at 50 ms, sees it: four of eight requests are answered.
    control.interrupt();
    let run = harness.run_load(&control);
    assert_eq!(run.samples.len(), 8);
    assert_eq!(counted(&run), (4, 50));
}

/// A response that ends a window may be read after another target's user has begun the next round.
#[test]
fn conversations_of_a_round_have_the_same_numbers_on_all_targets_and_no_other_round_has_them() {
    let shared = SharedConversations::default();
    assert_eq!([0, 1, 2].map(|count| shared.number(0, count)), [Some(0), Some(1), Some(2)]);
    assert_eq!(shared.number(0, 0), Some(0), "of another target");
    assert_eq!(shared.number(1, 0), Some(3));
    assert_eq!(shared.number(0, 1), None, "the round is over");
    assert_eq!([0, 1].map(|count| shared.number(1, count)), [Some(3), Some(4)]);
}
