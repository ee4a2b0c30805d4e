//! Conversations with agents, against an agent of a few lines that knows its own answers.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use plimsoll_measure::{ErrorClass, Operation, Outcome};

use crate::support::{plan, run};

/// The messages that an agent has had: first line of the head, version header, body.
type Seen = Arc<Mutex<Vec<(String, Option<String>, String)>>>;

/// Serves an agent; the threads end with the process.
fn agent() -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || serve(&stream, &log));
        }
    });
    (url, seen)
}

fn serve(stream: &TcpStream, log: &Seen) -> Option<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let (request, mut length, mut version) = (line.trim().to_owned(), 0, None);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim().split_once(": ") else { break };
            match name {
                "content-length" => length = value.parse().ok()?,
                "a2a-version" => version = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).ok()?;
        let mut log = log.lock().unwrap();
        let number = log.len();
        log.push((request.clone(), version, body.clone()));
        drop(log);
        let (kind, answer) = answer(&request, &body, number);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        writer.write_all((head + &answer).as_bytes()).ok()?;
    }
}

/// The text behind `key` up to the next quote or comma.
fn member<'b>(body: &'b str, key: &str) -> &'b str {
    let rest = body.split_once(&format!("\"{key}\":")).map_or("", |(_, rest)| rest);
    rest.trim_start_matches('"').split(['"', ',']).next().unwrap_or_default()
}

/// Responses of the agent: every third task fails, and none can be cancelled.
fn answer(request: &str, body: &str, number: usize) -> (&'static str, String) {
    const JSON: &str = "application/json";
    if request.starts_with("GET") {
        return (JSON, r#"{"name":"tiny","skills":[]}"#.to_owned());
    }
    let (id, method) = (member(body, "id"), member(body, "method"));
    let message = |rest: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#);
    let end = if number.is_multiple_of(3) { "FAILED" } else { "COMPLETED" };
    let task = |state: &str| {
        format!(
            r#"{{"id":"t-{number}","contextId":"c","status":{{"state":"TASK_STATE_{state}"}}}}"#
        )
    };
    let update = |kind: &str, rest: &str| {
        message(&format!(
            r#""result":{{"{kind}":{{"taskId":"t-{number}","contextId":"c",{rest}}}}}"#
        ))
    };
    let answer = match method {
        "SendMessage" => message(&format!(r#""result":{{"task":{}}}"#, task(end))),
        "SendStreamingMessage" => {
            let status = |state: &str| {
                update("statusUpdate", &format!(r#""status":{{"state":"TASK_STATE_{state}"}}"#))
            };
            let artifact =
                update("artifactUpdate", r#""artifact":{"artifactId":"a","parts":[{"text":"x"}]}"#);
            let all = [status("WORKING"), artifact.clone(), artifact, status(end)];
            let events = all.map(|data| format!("data: {data}\n\n")).concat();
            return ("text/event-stream", events);
        }
        "GetTask" => {
            let state = r#""contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}"#;
            message(&format!(r#""result":{{"id":"{}",{state}}}"#, task_of(body)))
        }
        "CancelTask" => message(r#""error":{"code":-32002,"message":"not cancelable"}"#),
        _ => message(r#""error":{"code":-32601,"message":"no such method"}"#),
    };
    (JSON, answer)
}

/// The task that `params` names.
fn task_of(body: &str) -> &str {
    member(body.split_once("\"params\":").map_or("", |(_, params)| params), "id")
}

#[test]
fn what_an_agent_answers_is_what_is_counted() {
    let (url, seen) = agent();
    let profile = "protocol: a2a
stages: '3:60s'
max_requests: 200
turns: 8
drain: 60s
content: {mode: sized, approx_input_tokens: 16}
a2a:
  steps:
    - {action: send, weight: 3}
    - {action: stream, weight: 3}
    - {action: get, weight: 2}
    - {action: cancel}
    - {action: card}
";
    let ran = run(plan(&url, profile));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), ran.sent());
    let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
    let mut failed = 0;
    for (number, (request, version, body)) in seen.iter().enumerate() {
        assert_eq!(version.as_deref(), Some("1.0"));
        let method = if request.starts_with("GET /.well-known/agent-card.json ") {
            "agent-card"
        } else {
            assert!(request.starts_with("POST /a2a "), "{request}");
            member(body, "method")
        };
        *expected.entry(method).or_default() += 1;
        failed += u64::from(method.starts_with("Send") && number.is_multiple_of(3));
        // A task is named only if the agent has named it before.
        if matches!(method, "GetTask" | "CancelTask") {
            let named: usize = task_of(body).strip_prefix("t-").unwrap().parse().unwrap();
            assert!(named < number && member(&seen[named].2, "method").starts_with("Send"));
        }
    }
    for (name, count) in expected {
        let operation = Operation::named(name);
        let group = ran.result.snapshot.total(|key| key.operation == operation);
        assert_eq!(group.counters().scheduled, count, "{name}");
        let errors = if name == "CancelTask" { count } else { 0 };
        assert_eq!(group.counters().failed, errors, "{name}");
        assert_eq!(group.rpc_errors().get(&-32_002).copied().unwrap_or(0), errors, "{name}");
    }
    let total = ran.result.snapshot.total(|_| true);
    assert_eq!(total.counters().tool_errors, failed);
    let streams: Vec<_> = ran
        .samples
        .iter()
        .filter(|sample| sample.operation == Some(Operation::SendStreamingMessage))
        .collect();
    for sample in &streams {
        assert_eq!((sample.outcome, sample.events), (Outcome::Completed, 2));
        assert!(sample.stream && sample.timeline.ttft().is_some());
        // Three updates before the one that ends the task.
        assert_eq!(sample.rpc.notifications, 3);
    }
    assert!(!streams.is_empty());
    assert_eq!(total.errors().keys().copied().collect::<Vec<_>>(), [ErrorClass::RpcError]);
}
