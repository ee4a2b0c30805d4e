//! Responses of tool servers and agents, compared with bytes written by hand.

use plimsoll_measure::{ErrorClass, Operation, Outcome};
use plimsoll_protocol::rpc::a2a::TaskState;
use plimsoll_protocol::rpc::{Answer, Expectation};
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect};
use proptest::prelude::*;

use crate::support::{EVENTS, JSON};

/// The decoded response to one request.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) outcome: Outcome,
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
    pub(crate) answer: Answer,
    pub(crate) texts: Vec<String>,
}

fn dialect(operation: Operation) -> Dialect {
    match operation {
        Operation::AgentCard
        | Operation::SendMessage
        | Operation::SendStreamingMessage
        | Operation::GetTask
        | Operation::CancelTask => Dialect::A2a,
        _ => Dialect::Mcp,
    }
}

fn read_in<'a>(
    decoder: &mut Decoder,
    expected: Expectation,
    status: u16,
    content_type: Option<&str>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Read {
    let mut texts = Vec::new();
    decoder.expect(expected);
    decoder.head(status, content_type.map(str::as_bytes));
    for piece in pieces {
        decoder.feed(piece, &mut |delta| texts.push(delta.text.to_owned()));
    }
    let outcome = decoder.finish();
    Read {
        outcome,
        code: decoder.rpc_code(),
        message: decoder.error_detail().map(|detail| detail.message.clone()).unwrap_or_default(),
        answer: decoder.rpc_answer().unwrap().clone(),
        texts,
    }
}

/// Reads a whole body, and checks that its split into any two pieces or into single bytes gives the
/// same result.
fn read(operation: Operation, status: u16, content_type: Option<&str>, body: &str) -> Read {
    read_answer(expect(operation), status, content_type, body.as_bytes())
}

/// The response to a request with the id 7.
fn expect(operation: Operation) -> Expectation {
    Expectation { operation, id: 7 }
}

/// The same for any request.
pub(crate) fn read_answer(
    expected: Expectation,
    status: u16,
    content_type: Option<&str>,
    body: &[u8],
) -> Read {
    let mut decoder = Decoder::new(dialect(expected.operation), false, DecoderOptions::default());
    let whole = read_in(&mut decoder, expected, status, content_type, [body]);
    let bytewise = read_in(&mut decoder, expected, status, content_type, body.chunks(1));
    assert_eq!(bytewise, whole);
    for cut in 0..body.len().min(300) {
        let (start, end) = body.split_at(cut);
        assert_eq!(
            read_in(&mut decoder, expected, status, content_type, [start, end]),
            whole,
            "cut at {cut}"
        );
    }
    whole
}

fn result(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{{members}}}}}"#)
}

fn events(messages: &[&str]) -> String {
    let mut all = String::new();
    for message in messages {
        all.extend(["event: message\ndata: ", message, "\n\n"]);
    }
    all
}

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#;

#[test]
fn a_good_answer_gives_what_the_next_request_needs() {
    use Operation::{CallTool, Initialize, ListTools, Ping};

    let none = Answer::default();
    let version = Answer { version: Some("2025-06-18".to_owned()), ..none.clone() };
    let page = Answer { cursor: Some("p\"2".to_owned()), ..none.clone() };
    let failed = Answer { tool_error: true, ..none.clone() };
    for (operation, members, answer) in [
        (Ping, "", &none),
        (Initialize, r#""capabilities":{},"protocolVersion":"2025-06-18""#, &version),
        (ListTools, r#""tools":[{"name":"a","nextCursor":"no"}],"nextCursor":"p\"2""#, &page),
        (ListTools, r#""tools":[]"#, &none),
        (CallTool, r#""content":[{"type":"text","text":"isError"}],"isError":false"#, &none),
        (CallTool, r#""isError":true,"content":[]"#, &failed),
        // Only the result itself reports it.
        (
            CallTool,
            r#""structuredContent":{"isError":true,"error":{"code":1}},"content":[]"#,
            &none,
        ),
    ] {
        let whole = read(operation, 200, JSON, &result(members));
        assert_eq!((whole.outcome, &whole.answer), (Outcome::Completed, answer), "{members}");
        let streamed = read(operation, 200, EVENTS, &events(&[&result(members)]));
        assert_eq!((streamed.outcome, &streamed.answer), (Outcome::Completed, answer));
    }
}

#[test]
fn the_answer_of_a_stream_comes_behind_notifications() {
    let answer = result("\"content\":[]");
    let request = r#"{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}"#;
    let body =
        format!(": ping\n\nid: 5\ndata: \n\n{}", events(&[PROGRESS, request, PROGRESS, &answer]));
    let whole = read(Operation::CallTool, 200, EVENTS, &body);
    assert_eq!((whole.outcome, whole.answer.notifications), (Outcome::Completed, 3));
    assert!(whole.texts.is_empty(), "progress is no content");
    // Lines of data are joined by a line break, which JSON ignores.
    let lines = format!("data: {}\n\n", answer.replace(",\"result", ",\ndata: \"result"));
    assert_eq!(read(Operation::CallTool, 200, EVENTS, &lines).outcome, Outcome::Completed);
}

#[test]
fn an_error_of_the_protocol_is_a_failure_with_its_code() {
    let error = |id: &str, code: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no\ttool"}}}}"#)
    };
    let failed = Outcome::Failed(ErrorClass::RpcError);
    for (head, body) in [
        ((200, JSON), error("7", "-32602")),
        // The server could not parse the id.
        ((200, JSON), error("null", "-32602")),
        ((200, EVENTS), events(&[PROGRESS, &error("7", "-32602")])),
    ] {
        let read = read(Operation::CallTool, head.0, head.1, &body);
        assert_eq!((read.outcome, read.code), (failed, Some(-32_602)), "{body}");
        assert_eq!(read.message, "-32602: no\\ttool");
    }
    // With an error status it is a rejection, and its code is known as well.
    let refused = read(Operation::CallTool, 404, JSON, &error("7", "-32601"));
    assert_eq!((refused.outcome, refused.code), (Outcome::Rejected(404), Some(-32_601)));
    // The code of one response must not appear in the next.
    let mut decoder = Decoder::new(Dialect::Mcp, false, DecoderOptions::default());
    let bytes = error("7", "-1");
    let first = read_in(&mut decoder, expect(Operation::Ping), 200, JSON, [bytes.as_bytes()]);
    let second = read_in(&mut decoder, expect(Operation::Ping), 500, JSON, [&b""[..]]);
    assert_eq!((first.code, second.code), (Some(-1), None));
}

type Head<'h> = (u16, Option<&'h str>);

/// Complete messages that are not valid responses.
fn broken_messages(
    good: &str,
    malformed: ErrorClass,
) -> Vec<(Head<'static>, String, ErrorClass, &'static str)> {
    vec![
        (
            (200, JSON),
            good.replace(":7,", ":8,"),
            malformed,
            "the answer has the id 8, and the request had 7",
        ),
        (
            (200, JSON),
            good.replace(":7,", ":\"7\","),
            malformed,
            "the answer has the id \"7\", and",
        ),
        ((200, JSON), good.replace(":7,", ":null,"), malformed, "the answer has the id null"),
        ((200, JSON), good.replace(":7,", ":7.0,"), malformed, "the answer has the id 7.0"),
        ((200, JSON), good.replace("\"id\":7,", ""), malformed, "without `id`"),
        (
            (200, JSON),
            good.replace("\"jsonrpc\":\"2.0\",", ""),
            malformed,
            "without `jsonrpc: \"2.0\"`",
        ),
        ((200, JSON), good.replace("2.0", "1.0"), malformed, "without `jsonrpc: \"2.0\"`"),
        ((200, JSON), format!("[{good}]"), malformed, "a batch of messages"),
        ((200, EVENTS), events(&[&format!("[{good}]")]), malformed, "a batch of messages"),
        ((200, JSON), "7".to_owned(), malformed, "not an object"),
        ((200, JSON), String::new(), malformed, "the body is empty"),
        (
            (200, JSON),
            good[..20].to_owned(),
            malformed,
            "expected the end of the string at byte 20",
        ),
        ((200, JSON), format!("{good} x"), malformed, "expected the end"),
        ((200, JSON), good.replace("{}", "[]"), malformed, "`result` is not an object"),
        ((200, JSON), good.replace("{}", "null"), malformed, "`result` is not an object"),
        ((200, JSON), r#"{"jsonrpc":"2.0","id":7}"#.to_owned(), malformed, "without `result` and"),
        (
            (200, JSON),
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}"#.to_owned(),
            malformed,
            "with `result` and `error`",
        ),
        (
            (200, JSON),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":"m"}}"#.to_owned(),
            malformed,
            "without a whole number as `code`",
        ),
        ((200, JSON), r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#.to_owned(), malformed, "`code`"),
    ]
}

/// Responses that violate the protocol: head, body, class of the failure, and part of its message.
fn broken() -> Vec<(Head<'static>, String, ErrorClass, &'static str)> {
    let good = result("");
    let malformed = ErrorClass::MalformedBody;
    let mut all = broken_messages(&good, malformed);
    all.extend([
        ((200, JSON), PROGRESS.to_owned(), malformed, "instead of a response"),
        ((200, EVENTS), events(&[&good, &good]), malformed, "a second answer"),
        (
            (200, EVENTS),
            events(&[PROGRESS]),
            ErrorClass::StreamTruncated,
            "ended before the answer",
        ),
        ((200, EVENTS), String::new(), ErrorClass::StreamTruncated, "ended before the answer"),
        (
            (200, EVENTS),
            format!("data: {}", &good[..20]),
            ErrorClass::StreamTruncated,
            "ended before",
        ),
        ((200, EVENTS), "data: {\n\n".to_owned(), malformed, "expected a string at byte 1"),
        ((200, Some("text/html")), "<p>".to_owned(), ErrorClass::ContentType, "not JSON"),
        ((302, JSON), String::new(), ErrorClass::Redirect, "redirect"),
        ((500, JSON), String::new(), ErrorClass::ServerError, "server_error"),
    ]);
    all
}

#[test]
fn the_last_event_counts_without_the_blank_line_behind_it() {
    for end in ["", "\n", "\r\n"] {
        let body = format!("data: {}{end}", result(""));
        let read = read(Operation::Ping, 200, EVENTS, &body);
        assert_eq!(read.outcome, Outcome::Completed, "{body}");
    }
}

#[test]
fn what_breaks_the_protocol_is_named() {
    for (head, body, class, says) in broken() {
        let read = read(Operation::Ping, head.0, head.1, &body);
        assert_eq!(read.outcome, Outcome::Failed(class), "{body}: {}", read.message);
        assert!(read.message.contains(says), "{body}: {}", read.message);
    }
    let mut decoder = Decoder::new(Dialect::Mcp, false, DecoderOptions::default());
    let bad = read_in(&mut decoder, expect(Operation::Ping), 200, JSON, [&b"{\"a\":\"\xff\"}"[..]]);
    assert!(bad.message.contains("UTF-8"), "{}", bad.message);
}

#[test]
fn a_version_that_nobody_speaks_is_a_failure() {
    for (members, named) in [
        (r#""protocolVersion":"1900-01-01""#, "`1900-01-01`"),
        ("", "`none`"),
        (r#""protocolVersion":7"#, "`none`"),
    ] {
        let read = read(Operation::Initialize, 200, JSON, &result(members));
        assert_eq!(read.outcome, Outcome::Failed(ErrorClass::MalformedBody));
        assert!(read.message.contains(named), "{}", read.message);
    }
}

#[test]
fn notifications_and_deletions_are_answered_without_a_body() {
    for (operation, status) in
        [(Operation::Initialized, 202), (Operation::Cancelled, 202), (Operation::EndSession, 204)]
    {
        for content_type in [None, JSON, Some("text/plain")] {
            assert_eq!(read(operation, status, content_type, "").outcome, Outcome::Completed);
        }
    }
    let deleted = read(Operation::EndSession, 200, Some("text/plain"), "bye");
    assert_eq!(deleted.outcome, Outcome::Completed);
    let answered = read(Operation::Initialized, 200, JSON, &result(""));
    assert!(answered.message.contains("a notification was answered"), "{}", answered.message);
    assert_eq!(read(Operation::EndSession, 405, JSON, "").outcome, Outcome::Rejected(405));
}

const TASK: &str = r#""id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}"#;

#[test]
fn an_agents_answer_is_read_in_both_versions() {
    use Operation::{CancelTask, GetTask, SendMessage};

    let answer = |state, tool_error| Answer {
        task: Some("t1".to_owned()),
        context: Some("c1".to_owned()),
        state: Some(state),
        tool_error,
        ..Answer::default()
    };
    let old = r#""kind":"task","id":"t1","contextId":"c1","status":{"state":"failed","message":{"parts":[{"text":"x"}]}}"#;
    for (operation, members, expected) in [
        (SendMessage, format!("\"task\":{{{TASK}}}"), answer(TaskState::Completed, false)),
        (GetTask, TASK.to_owned(), answer(TaskState::Completed, false)),
        (CancelTask, TASK.replace("COMPLETED", "CANCELED"), answer(TaskState::Canceled, false)),
        (SendMessage, old.to_owned(), answer(TaskState::Failed, true)),
        // A failed task is not an error of this request.
        (GetTask, old.to_owned(), answer(TaskState::Failed, false)),
        (
            SendMessage,
            format!("\"task\":{{{}}}", TASK.replace("COMPLETED", "INPUT_REQUIRED")),
            answer(TaskState::InputRequired, false),
        ),
    ] {
        let whole = read(operation, 200, JSON, &result(&members));
        assert_eq!((whole.outcome, whole.answer), (Outcome::Completed, expected), "{members}");
    }
    for members in [
        r#""message":{"messageId":"m","contextId":"c1","parts":[{"text":"hi"}]}"#,
        r#""kind":"message","messageId":"m","contextId":"c1","parts":[{"kind":"text","text":"hi"}]"#,
    ] {
        let message = read(SendMessage, 200, JSON, &result(members));
        assert_eq!(message.outcome, Outcome::Completed);
        assert_eq!(message.answer.context.as_deref(), Some("c1"));
        assert_eq!(message.answer.task, None);
    }
    for (operation, members) in [(SendMessage, "\"x\":1"), (GetTask, "\"id\":\"t1\"")] {
        let nothing = read(operation, 200, JSON, &result(members));
        assert_eq!(nothing.outcome, Outcome::Failed(ErrorClass::MalformedBody), "{members}");
    }
    let card = |body: &str| read(Operation::AgentCard, 200, JSON, body).outcome;
    assert_eq!(card(r#"{"name":"a","skills":[]}"#), Outcome::Completed);
    assert_eq!(card(r#"{"skills":[{"name":"a"}]}"#), Outcome::Failed(ErrorClass::MalformedBody));
    for last in ["[]", "{}", "null", "5"] {
        let twice = format!(r#"{{"name":"a","name":{last}}}"#);
        assert_eq!(card(&twice), Outcome::Failed(ErrorClass::MalformedBody), "{twice}");
    }
}

/// A stream of version 1.0 or 0.3: a task, work, an artifact in two parts, and the end.
fn agent_stream(version: &str) -> Vec<String> {
    let new = [
        r#""task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_SUBMITTED"}}"#,
        r#""statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}"#,
        r#""artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"a","parts":[{"text":"one"}]}}"#,
        r#""artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"a","parts":[{"text":"two"}]},"append":true}"#,
        r#""statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}"#,
    ];
    let old = [
        r#""kind":"task","id":"t1","contextId":"c1","status":{"state":"submitted"}"#,
        r#""kind":"status-update","taskId":"t1","contextId":"c1","status":{"state":"working"},"final":false"#,
        r#""kind":"artifact-update","taskId":"t1","contextId":"c1","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"one"}]}"#,
        r#""kind":"artifact-update","taskId":"t1","contextId":"c1","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"two"}]}"#,
        r#""kind":"status-update","taskId":"t1","contextId":"c1","status":{"state":"completed"},"final":true"#,
    ];
    (if version == "1.0" { new } else { old }).map(result).to_vec()
}

fn stream_of(messages: &[String]) -> String {
    events(&messages.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn an_agents_stream_is_read_to_the_end_of_its_task() {
    let operation = Operation::SendStreamingMessage;
    for version in ["1.0", "0.3"] {
        let messages = agent_stream(version);
        let whole = read(operation, 200, EVENTS, &stream_of(&messages));
        assert_eq!(whole.outcome, Outcome::Completed, "{}", whole.message);
        assert_eq!(whole.texts, ["one", "two"]);
        assert_eq!(whole.answer.notifications, 4);
        assert_eq!(whole.answer.state, Some(TaskState::Completed));
        assert_eq!(whole.answer.task.as_deref(), Some("t1"));
        let cut = read(operation, 200, EVENTS, &stream_of(&messages[..4]));
        assert_eq!(cut.outcome, Outcome::Failed(ErrorClass::StreamTruncated));
        let failed =
            stream_of(&messages).replace("COMPLETED", "FAILED").replace("completed", "failed");
        let failed = read(operation, 200, EVENTS, &failed);
        assert_eq!((failed.outcome, failed.answer.tool_error), (Outcome::Completed, true));
    }
    let message = result(r#""message":{"messageId":"m","parts":[{"text":"hi"}]}"#);
    let direct = read(operation, 200, EVENTS, &stream_of(&[message]));
    assert_eq!((direct.outcome, direct.texts), (Outcome::Completed, vec!["hi".to_owned()]));
    // An error may be plain JSON; a response may not.
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"no task"}}"#;
    let refused = read(operation, 200, JSON, error);
    assert_eq!(
        (refused.outcome, refused.code),
        (Outcome::Failed(ErrorClass::RpcError), Some(-32_001))
    );
    let whole = read(operation, 200, JSON, &agent_stream("1.0")[4]);
    assert_eq!(whole.outcome, Outcome::Failed(ErrorClass::ContentType));
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let options = DecoderOptions { max_body_bytes: 1_000, ..DecoderOptions::default() };
    let mut decoder = Decoder::new(Dialect::Mcp, false, options);
    let body = result(&format!("\"x\":\"{}\"", "y".repeat(1_000)));
    let read = read_in(&mut decoder, expect(Operation::Ping), 200, JSON, [body.as_bytes()]);
    assert_eq!(read.outcome, Outcome::Failed(ErrorClass::BodyTooLarge));
}

proptest! {
    #[test]
    fn any_split_of_any_bytes_reads_as_one(
        which in 0usize..4,
        is_stream in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let operation = [
            Operation::CallTool,
            Operation::Initialize,
            Operation::SendMessage,
            Operation::SendStreamingMessage,
        ][which];
        let message = if which < 2 { result(r#""isError":true,"nextCursor":"é""#) } else { agent_stream("1.0").concat() };
        let mut body = if is_stream { events(&[PROGRESS, &message]) } else { message }.into_bytes();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let head = (200, if is_stream { EVENTS } else { JSON });
        let mut decoder = Decoder::new(dialect(operation), false, DecoderOptions::default());
        let whole = read_in(&mut decoder, expect(operation), head.0, head.1, [&body[..]]);
        let pieces = cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]);
        prop_assert_eq!(read_in(&mut decoder, expect(operation), head.0, head.1, pieces), whole);
    }
}
