//! Recorded responses of servers made with the official SDKs. `scripts/sdk/record` sent the
//! requests and recorded the responses; the tests list the same requests in the same order, with
//! their numbers as ids.

use plimsoll_measure::{ErrorClass, Operation, Outcome};
use plimsoll_protocol::rpc::Expectation;
use plimsoll_protocol::rpc::a2a::TaskState;

use crate::rpc_answers::{Read, read_answer};

/// A recorded response.
struct Response {
    status: u16,
    content_type: Option<String>,
    body: Vec<u8>,
}

/// The recorded responses of a server.
fn recorded(name: &str) -> Vec<Response> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proof/test-support/recorded/servers");
    let bytes = std::fs::read(format!("{folder}/{name}.http")).unwrap();
    let (mut rest, mut all) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (response, behind) = first(rest);
        all.push(response);
        rest = behind;
    }
    all
}

/// Splits off the first of several responses.
fn first(bytes: &[u8]) -> (Response, &[u8]) {
    let end = bytes.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    let (head, rest) = (str::from_utf8(&bytes[..end]).unwrap(), &bytes[end + 4..]);
    let header = |wanted: &str| {
        let headers = head.lines().filter_map(|line| line.split_once(':'));
        headers
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim().to_owned())
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let content_type = header("content-type");
    let (body, rest) = match header("content-length") {
        Some(length) => {
            let (body, rest) = rest.split_at(length.parse().unwrap());
            (body.to_vec(), rest)
        }
        None if header("transfer-encoding").is_some() => chunks(rest),
        None => (Vec::new(), rest),
    };
    (Response { status, content_type, body }, rest)
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|at| at == b"\r\n").unwrap();
        let size = usize::from_str_radix(str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let (chunk, behind) = rest[end + 2..].split_at(size);
        body.extend_from_slice(chunk);
        rest = behind.strip_prefix(b"\r\n").unwrap();
        if size == 0 {
            return (body, rest);
        }
    }
}

/// Expected reading of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    Good,
    ToolError,
    Error(i64),
}

/// Classifies a result; `None` for an unexpected one.
fn reading(read: &Read) -> Option<Reading> {
    match (read.outcome, read.code) {
        (Outcome::Completed, None) if read.answer.tool_error => Some(Reading::ToolError),
        (Outcome::Completed, None) => Some(Reading::Good),
        (Outcome::Failed(ErrorClass::RpcError) | Outcome::Rejected(_), code) => {
            code.map(Reading::Error)
        }
        _ => None,
    }
}

/// Reads every response of a server; `questions` are the requests.
fn read_all(name: &str, questions: &[(Operation, Reading)]) -> Vec<(Response, Read)> {
    let responses = recorded(name);
    assert_eq!(responses.len(), questions.len(), "{name}");
    let mut all = Vec::new();
    for ((response, (operation, expected)), id) in responses.into_iter().zip(questions).zip(1..) {
        let expected_answer = Expectation { operation: *operation, id };
        let content_type = response.content_type.as_deref();
        let read = read_answer(expected_answer, response.status, content_type, &response.body);
        assert_eq!(reading(&read), Some(*expected), "{name} {id} {operation:?}: {read:?}");
        all.push((response, read));
    }
    all
}

/// Number of occurrences of a text in a body.
fn occurrences(body: &[u8], text: &str) -> u32 {
    String::from_utf8_lossy(body).matches(text).count().try_into().unwrap()
}

const UNKNOWN: Reading = Reading::Error(-32_602);

#[test]
fn answers_of_the_official_tool_servers_are_read() {
    use Operation::{
        CallTool, Discover, EndSession, GetPrompt, Initialize, Initialized, ListResources,
        ListTools, Ping, ReadResource,
    };
    use Reading::{Good, ToolError};

    for (sdk, unknown_tool) in
        [("python", ToolError), ("typescript", UNKNOWN), ("typescript1", ToolError)]
    {
        let common = [
            (ListTools, Good),
            (CallTool, Good),
            // With progress notifications.
            (CallTool, Good),
            (CallTool, ToolError),
            (CallTool, unknown_tool),
            (ListResources, Good),
            (ReadResource, Good),
            (ReadResource, UNKNOWN),
            (GetPrompt, Good),
        ];
        for form in ["json", "events"] {
            let sessions: Vec<_> = [(Initialize, Good), (Initialized, Good)]
                .into_iter()
                .chain(common)
                .chain([(Ping, Good), (EndSession, Good)])
                .collect();
            let name = format!("mcp-{sdk}-2025-11-25-{form}");
            let all = read_all(&name, &sessions);
            assert_eq!(all[0].1.answer.version.as_deref(), Some("2025-11-25"), "{name}");
            expect_progress(&name, &all);
            if sdk != "typescript1" {
                let name = format!("mcp-{sdk}-2026-07-28-{form}");
                let stateless: Vec<_> = [(Discover, Good)].into_iter().chain(common).collect();
                expect_progress(&name, &read_all(&name, &stateless));
            }
        }
    }
}

/// Every notification is counted, and servers that respond with streams send some.
fn expect_progress(name: &str, all: &[(Response, Read)]) {
    let mut sum = 0;
    for (response, read) in all {
        let progress = occurrences(&response.body, "notifications/progress");
        assert_eq!(read.answer.notifications, progress, "{name}");
        sum += progress;
    }
    assert!(sum == 3 || !name.ends_with("events"), "{name}: {sum}");
}

#[test]
fn answers_of_the_official_agents_are_read() {
    use Operation::{AgentCard, CancelTask, GetTask, SendMessage, SendStreamingMessage};
    use Reading::{Error, Good, ToolError};

    for sdk in ["python", "typescript"] {
        for version in ["1.0", "0.3"] {
            let name = format!("a2a-{sdk}-{version}");
            let all = read_all(
                &name,
                &[
                    (AgentCard, Good),
                    (SendMessage, Good),
                    (SendStreamingMessage, Good),
                    (GetTask, Good),
                    (SendMessage, ToolError),
                    (SendMessage, Good),
                    (CancelTask, Good),
                    (GetTask, Error(-32_001)),
                ],
            );
            let answer = |at: usize| &all[at - 1].1.answer;
            let states = [2, 3, 4, 5, 7].map(|at| answer(at).state);
            let completed = Some(TaskState::Completed);
            let [failed, canceled] = [TaskState::Failed, TaskState::Canceled].map(Some);
            assert_eq!(states, [completed, completed, completed, failed, canceled], "{name}");
            for at in 2..=7 {
                let ids = (&answer(at).task, &answer(at).context);
                assert!(ids.0.is_some() && ids.1.is_some(), "{name} {at}: {ids:?}");
            }
            assert_eq!(answer(2).task, answer(4).task, "{name}");
            assert_eq!(answer(6).task, answer(7).task, "{name}");
            assert_eq!(all[2].1.texts, ["HE", "LL", "O"], "{name}");
            // The task, its working state, and three pieces; the end is the response.
            assert_eq!(answer(3).notifications, 5, "{name}");
        }
    }
}
