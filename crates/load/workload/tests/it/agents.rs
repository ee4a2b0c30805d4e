//! Conversations with agents: which message comes next.

use std::collections::BTreeSet;

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_protocol::rpc::a2a::{Ask, TaskState, Version};
use plimsoll_protocol::rpc::{self, Answer, Request};
use plimsoll_protocol::{Dialect, RequestContent};
use plimsoll_workload::{
    A2aAction, A2aSpec, A2aStep, CacheMode, Content, Conversation, RpcEnd, ScenarioSpec,
};

use crate::support::{conversation, conversations, scenario};

fn spec(actions: &[A2aAction], turns: u16) -> ScenarioSpec {
    let steps = actions.iter().map(|&action| A2aStep { action, weight: 1.0 }).collect();
    let a2a = Some(A2aSpec {
        version: Version::V0_3,
        path: String::new(),
        card_path: "/card".to_owned(),
        steps,
    });
    ScenarioSpec { protocol: Dialect::A2a, a2a, turns, stream: false, ..scenario() }
}

fn request(talk: &Conversation) -> Request {
    let RequestContent::Rpc(request) = talk.turn().unwrap().content else {
        panic!("not a message")
    };
    request.clone()
}

fn ask(talk: &Conversation) -> Ask {
    let rpc::Call::A2a(call) = request(talk).call else { panic!("not to an agent") };
    assert_eq!(call.version, Version::V0_3);
    call.ask
}

fn task(id: &str, state: TaskState) -> RpcEnd {
    let answer = Answer {
        task: Some(id.to_owned()),
        context: Some("c-1".to_owned()),
        state: Some(state),
        ..Answer::default()
    };
    RpcEnd { outcome: Outcome::Completed, status: 200, session: None, code: None, answer }
}

fn next(talk: &mut Conversation, end: RpcEnd) {
    assert!(talk.note_answer(end));
    talk.advance(None);
}

#[test]
fn a_message_has_the_scenarios_text_an_id_and_the_context_of_the_answers() {
    let content = Content::Scripted { script: vec!["one".to_owned(), "two".to_owned()] };
    let mut talk = conversation(&ScenarioSpec { content, ..spec(&[A2aAction::Send], 2) });
    let Ask::Send { message, stream: false, wait: true } = ask(&talk) else { panic!() };
    assert_eq!(
        (message.text.to_string().as_str(), message.context, message.task),
        ("one", None, None)
    );
    assert_eq!(message.id, talk.id());
    next(&mut talk, task("t-1", TaskState::Completed));
    let Ask::Send { message: second, .. } = ask(&talk) else { panic!() };
    assert_eq!(second.text.to_string(), "two");
    assert_eq!((second.context.as_deref(), second.task), (Some("c-1"), None));
    assert_ne!(second.id, message.id);
    next(&mut talk, task("t-2", TaskState::Completed));
    assert!(talk.is_over());
}

#[test]
fn a_task_that_asks_for_input_gets_the_next_message() {
    let mut talk = conversation(&spec(&[A2aAction::Send], 3));
    next(&mut talk, task("t-1", TaskState::InputRequired));
    let Ask::Send { message, .. } = ask(&talk) else { panic!() };
    assert_eq!(message.task.as_deref(), Some("t-1"));
    next(&mut talk, task("t-1", TaskState::Completed));
    let Ask::Send { message, .. } = ask(&talk) else { panic!() };
    assert_eq!(message.task, None);
}

/// The current request, in words.
fn described(talk: &Conversation) -> String {
    let name = request(talk).operation().name();
    match ask(talk) {
        Ask::Get { task } | Ask::Cancel { task } => format!("{name} {task}"),
        Ask::Send { wait: true, .. } => format!("{name} and wait"),
        Ask::Send { .. } | Ask::Card => name.to_owned(),
    }
}

/// The messages of a conversation whose answers name the tasks `t-1`, `t-2`, ...
fn operations(actions: &[A2aAction], turns: u16) -> Vec<String> {
    let mut talk = conversation(&spec(actions, turns));
    let mut all = Vec::new();
    while !talk.is_over() {
        all.push(described(&talk));
        next(&mut talk, task(&format!("t-{}", all.len()), TaskState::Working));
    }
    all
}

#[test]
fn a_step_that_needs_a_task_sends_a_message_first() {
    assert_eq!(operations(&[A2aAction::Get], 2), ["SendMessage", "GetTask t-1", "GetTask t-2"]);
    assert_eq!(
        operations(&[A2aAction::Cancel], 2),
        ["SendMessage", "CancelTask t-1", "SendMessage", "CancelTask t-3"]
    );
    assert_eq!(operations(&[A2aAction::Submit], 1), ["SendMessage"]);
    assert_eq!(operations(&[A2aAction::Send], 1), ["SendMessage and wait"]);
    assert_eq!(operations(&[A2aAction::Stream], 1), ["SendStreamingMessage"]);
    assert_eq!(operations(&[A2aAction::Card], 1), ["agent-card"]);
    let card = conversation(&spec(&[A2aAction::Card], 1));
    assert_eq!(&*request(&card).path, "/card");
}

#[test]
fn an_answer_without_a_task_leaves_out_what_would_need_it() {
    let mut talk = conversation(&spec(&[A2aAction::Cancel], 2));
    let message = RpcEnd {
        answer: Answer { context: Some("c-2".to_owned()), ..Answer::default() },
        ..task("", TaskState::Completed)
    };
    next(&mut talk, message.clone());
    let Ask::Send { message: second, .. } = ask(&talk) else { panic!() };
    assert_eq!(second.context.as_deref(), Some("c-2"));
    next(&mut talk, message);
    assert!(talk.is_over());
}

#[test]
fn an_error_of_the_protocol_answers_one_message_and_any_other_ends_the_conversation() {
    let end = |outcome| RpcEnd { outcome, ..task("t", TaskState::Working) };
    let mut talk = conversation(&spec(&[A2aAction::Cancel], 2));
    next(&mut talk, end(Outcome::Failed(ErrorClass::RpcError)));
    assert!(matches!(ask(&talk), Ask::Send { .. }), "no task, nothing to cancel");
    for outcome in
        [Outcome::Failed(ErrorClass::StreamTruncated), Outcome::Rejected(429), Outcome::TimedOut]
    {
        let mut talk = conversation(&spec(&[A2aAction::Send], 2));
        assert!(!talk.note_answer(end(outcome)), "{outcome:?}");
    }
}

#[test]
fn no_two_messages_are_alike_unless_that_is_asked_for() {
    let texts = |cache_mode| {
        let spec = ScenarioSpec { cache_mode, ..spec(&[A2aAction::Send], 2) };
        let text = |talk: &Conversation| {
            let Ask::Send { message, .. } = ask(talk) else { panic!() };
            message.text.to_string()
        };
        let mut texts = BTreeSet::new();
        for mut talk in conversations(&spec, 100) {
            texts.insert(text(&talk));
            next(&mut talk, task("t", TaskState::Completed));
            texts.insert(text(&talk));
        }
        texts.len()
    };
    assert_eq!((texts(CacheMode::Bust), texts(CacheMode::Allow)), (200, 1));
}
