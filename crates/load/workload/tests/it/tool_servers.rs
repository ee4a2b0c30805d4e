//! Sessions with tool servers: which message comes next.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_measure::{ConversationKey, ErrorClass, IdSeed, Nanos, Operation, Outcome, Seed};
use plimsoll_protocol::rpc::mcp::{Ask, Call, Revision};
use plimsoll_protocol::rpc::{self, Answer, Request};
use plimsoll_protocol::{Dialect, RequestContent};
use plimsoll_workload::{
    ByteRange, CacheMode, Conversation, DurationSpec, McpMethod, McpSpec, McpStep, RpcEnd,
    ScenarioSpec, Workload, WorkloadError,
};
use serde_json::{Map, Value, json};

use crate::support::{conversation, conversations, scenario, sized};

fn step(method: McpMethod, weight: f64) -> McpStep {
    let name = method.has_name().then(|| "x".to_owned());
    McpStep {
        method,
        weight,
        name,
        arguments: Map::new(),
        argument_bytes: None,
        argument: "text".to_owned(),
        progress: false,
        cancel_after: None,
    }
}

fn spec(revision: Revision, steps: Vec<McpStep>, turns: u16) -> ScenarioSpec {
    let mcp = Some(McpSpec {
        revision,
        path: "/tools".to_owned(),
        delete: true,
        tools: Vec::new(),
        steps,
    });
    ScenarioSpec { protocol: Dialect::Mcp, mcp, turns, content: sized(0), ..scenario() }
}

fn old(steps: Vec<McpStep>, turns: u16) -> ScenarioSpec {
    spec(Revision::V20251125, steps, turns)
}

fn request(talk: &Conversation) -> Request {
    let RequestContent::Rpc(request) = talk.turn().unwrap().content else {
        panic!("not a message")
    };
    request.clone()
}

fn call(talk: &Conversation) -> Call {
    let rpc::Call::Mcp(call) = request(talk).call else { panic!("not to a tool server") };
    call
}

fn completed() -> RpcEnd {
    let session = Some("s-1".to_owned());
    let answer = Answer { version: Some("2025-06-18".to_owned()), ..Answer::default() };
    RpcEnd { outcome: Outcome::Completed, status: 200, session, code: None, answer }
}

fn ended(outcome: Outcome, status: u16) -> RpcEnd {
    RpcEnd { outcome, status, session: None, code: None, answer: Answer::default() }
}

/// Operations of the rest of a conversation, if all of its messages complete, and whether it goes
/// on to its end.
fn played(mut talk: Conversation) -> (Vec<&'static str>, bool) {
    let mut operations = Vec::new();
    while !talk.is_over() {
        operations.push(request(&talk).operation().name());
        if !talk.note_answer(completed()) {
            return (operations, false);
        }
        talk.advance(None);
    }
    assert!(talk.turn().is_none() && talk.expectation().is_none());
    (operations, true)
}

/// The same of a conversation that does go on to its end.
fn rest(talk: Conversation) -> Vec<&'static str> {
    let (operations, to_the_end) = played(talk);
    assert!(to_the_end, "{operations:?}");
    operations
}

#[test]
fn a_session_is_handshake_steps_and_deletion() {
    let steps = vec![step(McpMethod::CallTool, 1.0)];
    let all = rest(conversation(&old(steps.clone(), 2)));
    let handshake = ["initialize", "notifications/initialized"];
    let calls = ["tools/call"; 2];
    assert_eq!(all, [&handshake[..], &calls, &["session-end"]].concat());
    let stateless = rest(conversation(&spec(Revision::V20260728, steps.clone(), 2)));
    assert_eq!(stateless, calls);
    let mut kept = old(steps, 2);
    kept.mcp.as_mut().unwrap().delete = false;
    assert_eq!(rest(conversation(&kept)), [&handshake[..], &calls].concat());
}

#[test]
fn what_the_handshake_gives_is_in_every_later_message() {
    let mut talk = conversation(&old(vec![step(McpMethod::Ping, 1.0)], 2));
    assert_eq!((call(&talk).session, call(&talk).version), (None, None));
    let mut ids = Vec::new();
    while !talk.is_over() {
        let (request, call) = (request(&talk), call(&talk));
        assert_eq!(&*request.path, "/tools");
        ids.push(request.id);
        if call.ask != Ask::Initialize {
            assert_eq!(call.session.as_deref(), Some("s-1"));
            assert_eq!(call.version.as_deref(), Some("2025-06-18"));
        }
        talk.note_answer(completed());
        talk.advance(None);
    }
    assert_eq!(ids, [1, 2, 3, 4, 5]);
    // A server may have no sessions at all: then there is nothing to name or to delete.
    let mut none = conversation(&old(vec![step(McpMethod::Ping, 1.0)], 1));
    none.note_answer(RpcEnd { session: None, ..completed() });
    none.advance(None);
    assert_eq!(call(&none).session, None);
    assert_eq!(rest(none), ["notifications/initialized", "ping"]);
}

#[test]
fn steps_are_chosen_by_weight_and_the_same_for_the_same_key() {
    let steps = vec![
        step(McpMethod::CallTool, 6.0),
        step(McpMethod::Ping, 3.0),
        step(McpMethod::ListTools, 0.0),
        step(McpMethod::GetPrompt, 1.0),
    ];
    let spec = old(steps, 10);
    let mut counts = BTreeMap::new();
    for talk in conversations(&spec, 2_000) {
        for operation in &rest(talk)[2..12] {
            *counts.entry(*operation).or_insert(0_u32) += 1;
        }
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), ["ping", "prompts/get", "tools/call"]);
    for (operation, share) in [("tools/call", 0.6), ("ping", 0.3), ("prompts/get", 0.1)] {
        // Four standard deviations of a binomial count of 20,000.
        let bound = 4.0 * (20_000.0_f64 * share * (1.0 - share)).sqrt();
        let difference = f64::from(counts[operation]) - 20_000.0 * share;
        assert!(difference.abs() < bound, "{counts:?}");
    }
    let steps = |seq| {
        rest(
            crate::support::workload(std::slice::from_ref(&spec))
                .conversation(ConversationKey::arrival(seq), None),
        )
    };
    assert_eq!(steps(7), steps(7));
    assert!((0..50).map(steps).collect::<BTreeSet<_>>().len() > 10);
}

#[test]
fn arguments_are_fixed_or_have_a_text_of_a_drawn_length() {
    let fixed = McpStep {
        arguments: json!({"a": null, "b": [1]}).as_object().unwrap().clone(),
        ..step(McpMethod::CallTool, 1.0)
    };
    let of = |step: McpStep, cache_mode| {
        let spec = ScenarioSpec { cache_mode, ..spec(Revision::V20260728, vec![step], 1) };
        conversations(&spec, 300)
            .iter()
            .map(|talk: &Conversation| match call(talk).ask {
                Ask::Tool { name, arguments, progress } => {
                    assert_eq!((&*name, progress), ("x", false));
                    serde_json::from_str::<Value>(&arguments).unwrap()
                }
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    for arguments in of(fixed.clone(), CacheMode::Allow) {
        assert_eq!(arguments, json!({"a": null, "b": [1]}));
    }
    let bytes = Some(ByteRange { min: 3, max: 130 });
    let sized = McpStep { argument_bytes: bytes, argument: "t".to_owned(), ..fixed };
    for cache_mode in [CacheMode::Allow, CacheMode::Bust] {
        let all = of(sized.clone(), cache_mode);
        let lengths: Vec<_> = all.iter().map(|a| a["t"].as_str().unwrap().len()).collect();
        assert!(lengths.iter().all(|length| (3..=130).contains(length)), "{lengths:?}");
        assert!(lengths.iter().collect::<BTreeSet<_>>().len() > 80, "{lengths:?}");
        assert!(all.iter().all(|arguments| arguments["b"] == json!([1])));
        let texts: BTreeSet<_> = all.iter().map(|a| a["t"].as_str().unwrap()).collect();
        assert!(texts.len() > 280, "{}", texts.len());
    }
}

#[test]
fn a_list_goes_on_where_its_last_page_ended() {
    let mut talk =
        conversation(&spec(Revision::V20260728, vec![step(McpMethod::ListTools, 1.0)], 4));
    let cursor = |talk: &Conversation| match call(talk).ask {
        Ask::List { cursor, .. } => cursor,
        other => panic!("{other:?}"),
    };
    let page = |next: Option<&str>| RpcEnd {
        answer: Answer { cursor: next.map(str::to_owned), ..Answer::default() },
        ..completed()
    };
    let mut seen = Vec::new();
    for next in [Some("a"), Some("b"), None, None] {
        seen.push(cursor(&talk));
        talk.note_answer(page(next));
        talk.advance(None);
    }
    assert_eq!(seen, [None, Some("a".to_owned()), Some("b".to_owned()), None]);
}

#[test]
fn an_error_that_answers_a_step_does_not_end_the_session() {
    let talk = || {
        let mut talk = conversation(&old(vec![step(McpMethod::CallTool, 1.0)], 3));
        for _ in 0..2 {
            assert!(talk.note_answer(completed()));
            talk.advance(None);
        }
        talk
    };
    let call = ["tools/call"; 2];
    let end = ["session-end"];
    let whole = ([&call[..], &end].concat(), true);
    let cancelled = ([&["notifications/cancelled"], &call[..], &end].concat(), true);
    // A session with steps left has ended early, although its deletion completes.
    let early = || Some((end.to_vec(), false));
    for (outcome, status, expected) in [
        (Outcome::Failed(ErrorClass::RpcError), 200, Some(whole)),
        (Outcome::Cancelled, 0, Some(cancelled)),
        // The rest of the session is given up; the server is told, if it is there and has it.
        (Outcome::Failed(ErrorClass::ServerError), 503, early()),
        (Outcome::Failed(ErrorClass::MalformedBody), 200, early()),
        (Outcome::Rejected(429), 429, early()),
        (Outcome::Rejected(404), 404, None),
        (Outcome::TimedOut, 0, None),
        (Outcome::Failed(ErrorClass::ConnectRefused), 0, None),
    ] {
        let mut talk = talk();
        let goes_on = talk.note_answer(ended(outcome, status));
        assert_eq!(goes_on, expected.is_some(), "{outcome:?}");
        if let Some(expected) = expected {
            talk.advance(None);
            assert_eq!(played(talk), expected, "{outcome:?}");
        }
    }
}

#[test]
fn a_cancelled_call_is_named_by_its_id() {
    let cancel_after = Some(Nanos::from_millis(5));
    let steps = vec![McpStep { cancel_after, ..step(McpMethod::CallTool, 1.0) }];
    let mut talk = conversation(&old(steps.clone(), 1));
    assert_eq!(talk.cancel_after(), None, "only the call is given up");
    for _ in 0..2 {
        talk.note_answer(completed());
        talk.advance(None);
    }
    assert_eq!((talk.cancel_after(), request(&talk).id), (cancel_after, 3));
    assert!(talk.note_answer(ended(Outcome::Cancelled, 0)));
    talk.advance(None);
    assert_eq!((call(&talk).ask, talk.cancel_after()), (Ask::Cancelled { request: 3 }, None));
    // Without sessions the connection is closed, and that is all.
    let mut stateless = conversation(&spec(Revision::V20260728, steps, 2));
    assert!(stateless.note_answer(ended(Outcome::Cancelled, 0)));
    stateless.advance(None);
    assert_eq!(rest(stateless), ["tools/call"]);
}

#[test]
fn an_error_of_the_protocol_may_come_with_a_status() {
    for revision in [Revision::V20251125, Revision::V20260728] {
        let (has_sessions, steps) = (revision.has_sessions(), vec![step(McpMethod::CallTool, 1.0)]);
        for (status, code, next) in [
            (400, Some(-32_602), Some("tools/call")),
            (400, None, has_sessions.then_some("session-end")),
            (404, Some(-32_601), (!has_sessions).then_some("tools/call")),
        ] {
            let mut talk = conversation(&spec(revision, steps.clone(), 2));
            for _ in 0..if has_sessions { 2 } else { 0 } {
                talk.note_answer(completed());
                talk.advance(None);
            }
            let end = RpcEnd { code, ..ended(Outcome::Rejected(status), status) };
            assert_eq!(talk.note_answer(end), next.is_some(), "{revision:?} {status}");
            talk.advance(None);
            let found = talk.expectation().map(|expected| expected.operation.name());
            let found = found.filter(|_| next.is_some());
            assert_eq!(found, next, "{revision:?} {status}");
        }
    }
}

#[test]
fn a_handshake_that_fails_ends_the_conversation() {
    let mut talk = conversation(&old(vec![step(McpMethod::Ping, 1.0)], 1));
    assert!(!talk.note_answer(ended(Outcome::Rejected(401), 401)));
}

#[test]
fn users_think_before_every_step_but_the_first_and_nowhere_else() {
    let think_time = Some(DurationSpec::Fixed(Nanos::from_secs(1)));
    let spec = ScenarioSpec { think_time, ..old(vec![step(McpMethod::Ping, 1.0)], 3) };
    let mut talk = conversation(&spec);
    let mut pauses = Vec::new();
    while !talk.is_over() {
        pauses.push(talk.think_time().as_secs_f64() > 0.0);
        talk.note_answer(completed());
        talk.advance(None);
    }
    assert_eq!(pauses, [false, false, false, true, true, false]);
}

#[test]
fn a_message_can_be_made_again() {
    let bytes = Some(ByteRange { min: 50, max: 50 });
    let steps = vec![McpStep { argument_bytes: bytes, ..step(McpMethod::CallTool, 1.0) }];
    let mut talk = conversation(&spec(Revision::V20260728, steps, 2));
    let first = request(&talk);
    let expected = rpc::Expectation { operation: Operation::CallTool, id: first.id };
    assert_eq!(talk.expectation(), Some(expected));
    talk.release_text();
    assert!(talk.turn().is_none());
    assert_eq!(talk.expectation(), None, "asked for with the message");
    talk.restore_text();
    assert_eq!(request(&talk), first);
    talk.release_text();
    talk.advance(None);
    assert_ne!(request(&talk), first);
}

#[test]
fn steps_that_cannot_be_played_are_reported_with_their_key_and_fix() {
    let refusal = |spec: ScenarioSpec| {
        let error = Workload::new(&[spec], None, None, Seed(1), IdSeed::default()).unwrap_err();
        assert!(matches!(error, WorkloadError::Scenarios(_)));
        error.to_string()
    };
    let one = |step| old(vec![step], 1);
    let call = || step(McpMethod::CallTool, 1.0);
    let ping = || step(McpMethod::Ping, 1.0);
    let bytes = |min, max| Some(ByteRange { min, max });
    for (spec, part) in [
        (ScenarioSpec { mcp: None, ..one(ping()) }, "`mcp`: the protocol `mcp` has no steps"),
        (one(McpStep { weight: 0.0, ..ping() }), "`mcp`: the protocol `mcp` has no steps"),
        (
            old(vec![ping(), McpStep { weight: -1.0, ..ping() }], 1),
            "`mcp.steps.1.weight`: the weight -1",
        ),
        (one(McpStep { name: None, ..call() }), "`mcp.steps.0.name`: the step has no `name`"),
        (
            one(McpStep { name: Some("a".to_owned()), ..ping() }),
            "`mcp.steps.0.name`: steps of this",
        ),
        (one(McpStep { progress: true, ..ping() }), "`mcp.steps.0.progress`: steps of this method"),
        (one(McpStep { argument_bytes: bytes(2, 1), ..call() }), "argument_bytes`: the lengths"),
        (
            one(McpStep { argument_bytes: bytes(0, 1 << 30), ..call() }),
            "argument_bytes`: the lengths",
        ),
        (one(step(McpMethod::Discover, 1.0)), "`mcp.steps.0.method`: revision 2025-11-25 does not"),
        (spec(Revision::V20260728, vec![ping()], 1), "`mcp.steps.0.method`: revision 2026-07-28"),
    ] {
        let message = refusal(spec);
        assert!(message.contains(part), "{part}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
