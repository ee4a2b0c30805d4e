//! Agents that call agents: through a gateway that passes the path on, loses it, refuses, or hangs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use plimsoll_mock::{CallRecord, LogRecord, Mock};
use serde_json::{Value, json};

use super::{JSON, V1, VERSIONS, request};
use crate::support::{Client, finish, spawn};

/// What the gateway does.
#[derive(Clone, Copy)]
enum Gateway {
    /// Forwards to the agent, with its name added to the path.
    Forwards,
    /// Forwards, but without the path.
    LosesThePath,
    /// Answers 409 `agent_loop`.
    Refuses,
    /// Never answers.
    Hangs,
}

/// A request as the gateway got it: its head and its body.
type Got = (String, Value);

/// Reads a request.
fn read(stream: &mut TcpStream) -> Got {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4_096];
        let read = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let parts = text.split_once("\r\n\r\n");
        if let Some(body) = parts.and_then(|(_, body)| serde_json::from_str(body).ok()) {
            return (parts.unwrap().0.to_lowercase(), body);
        }
        assert!(read > 0, "{text}");
    }
}

/// Serves one connection.
fn relay(mut stream: TcpStream, gateway: Gateway, agent: SocketAddr, seen: &Sender<Got>) {
    let (head, body) = read(&mut stream);
    let path = head.lines().find_map(|line| line.strip_prefix("x-agent-path: "));
    let path = path.map_or_else(|| "self".to_owned(), |path| format!("{path},self"));
    let message = VERSIONS[0].message(body["message"].as_str().unwrap_or_default(), &json!({}));
    seen.send((head, body)).unwrap();
    let (status, answer) = match gateway {
        Gateway::Hangs => {
            // Until the caller gives up.
            let _ = stream.read(&mut [0]);
            return;
        }
        Gateway::Refuses => (409, json!({"error": {"type": "agent_loop", "message": "no"}})),
        Gateway::Forwards | Gateway::LosesThePath => {
            let lines = match gateway {
                Gateway::Forwards => format!("x-agent-path: {path}\r\n"),
                _ => String::new(),
            };
            let text = request(1, "SendMessage", &message);
            let mut to = TcpStream::connect(agent).unwrap();
            let length = text.len();
            write!(
                to,
                "POST /a2a/self HTTP/1.1\r\nhost: a\r\nconnection: close\r\na2a-version: 1.0\r\n\
                 content-type: application/json\r\n{lines}content-length: {length}\r\n\r\n{text}"
            )
            .unwrap();
            let mut answer = String::new();
            to.read_to_string(&mut answer).unwrap();
            let body = answer.split_once("\r\n\r\n").unwrap().1;
            let result = serde_json::from_str::<Value>(body).unwrap()["result"].clone();
            (200, json!({"agent": "self", "result": result}))
        }
    };
    let answer = answer.to_string();
    let length = answer.len();
    write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{answer}").unwrap();
}

/// A mock whose agent calls itself through a gateway, and what the gateway got.
fn spawn_with(gateway: Gateway, further: &str) -> (Mock, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/a2a/send", listener.local_addr().unwrap());
    let mock = spawn(&format!(
        "{{log: memory, a2a: {{agents: {{self: {{echo: true, calls:
            {{url: '{url}', agent: self, key: secret{further}}}}}}}}}}}"
    ));
    let (agent, (sender, seen)) = (mock.addr(), channel());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || relay(stream, gateway, agent, &sender));
        }
    });
    (mock, seen)
}

fn send(mock: &Mock, headers: &[(&str, &str)]) -> Value {
    let body = request(7, "SendMessage", &VERSIONS[0].message("hello", &json!({})));
    Client::connect(mock).post("/a2a/self", &[&[JSON, V1], headers].concat(), &body).json()
}

/// The path and the call of each row.
fn rows(log: &[LogRecord]) -> Vec<(Option<&str>, CallRecord)> {
    let rpc = log.iter().filter_map(|record| record.rpc.as_deref());
    rpc.map(|rpc| (rpc.path.as_deref(), rpc.call.clone().unwrap())).collect()
}

fn called(status: u16, error: Option<&str>) -> CallRecord {
    CallRecord { status, error: error.map(str::to_owned) }
}

#[test]
fn an_agent_sends_the_path_on_until_its_bound() {
    let (mock, seen) = spawn_with(Gateway::Forwards, ", depth: 3");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let answer = send(&mock, &[("traceparent", trace)]);
    let message = &answer["result"]["message"];
    assert_eq!(message["parts"][0]["text"], "hello");
    assert_eq!(message["metadata"], json!({"called": {"status": 200, "error": null}}));
    let log = finish(mock);
    assert_eq!(
        rows(&log),
        [
            (None, called(200, None)),
            (Some("self"), called(200, None)),
            (Some("self,self"), called(200, None)),
            (Some("self,self,self"), called(0, Some("depth"))),
        ]
    );
    let got: Vec<Got> = seen.try_iter().collect();
    assert_eq!(got.len(), 3);
    let bodies: Vec<&Value> = got.iter().map(|(_, body)| body).collect();
    assert_eq!(bodies[0], &json!({"agent": "self", "message": "hello"}));
    assert_eq!(bodies[1..], [&call_body(&json!(["self"])), &call_body(&json!(["self", "self"]))]);
    assert!(got[0].0.starts_with("post /v1/a2a/send http/1.1"), "{}", got[0].0);
    assert!(got.iter().all(|(head, _)| head.contains("authorization: bearer secret")));
    assert!(got[0].0.contains(trace) && !got[0].0.contains("x-agent-path"));
    assert!(got[2].0.contains("x-agent-path: self,self"));
}

fn call_body(path: &Value) -> Value {
    json!({"agent": "self", "message": "hello", "path": path})
}

#[test]
fn a_loop_whose_path_is_lost_ends_at_the_bound_of_calls_in_flight() {
    let (mock, _seen) = spawn_with(Gateway::LosesThePath, ", in_flight: 3");
    send(&mock, &[]);
    let log = finish(mock);
    let expected =
        [called(200, None), called(200, None), called(200, None), called(0, Some("busy"))];
    assert_eq!(rows(&log), expected.map(|call| (None, call)));
}

#[test]
fn what_became_of_a_call_is_said_and_the_agent_answers_anyway() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = || {
        let config =
            format!("{{a2a: {{agents: {{self: {{calls: {{url: 'http://{closed}/'}}}}}}}}}}");
        spawn(&config)
    };
    for (mock, status, error) in [
        (spawn_with(Gateway::Refuses, "").0, 409, "agent_loop"),
        (spawn_with(Gateway::Hangs, ", timeout: 100ms").0, 0, "timeout"),
        (unreachable(), 0, "connection"),
    ] {
        let answer = send(&mock, &[]);
        let expected = json!({"called": {"status": status, "error": error}});
        assert_eq!(answer["result"]["message"]["metadata"], expected);
    }
}

#[test]
fn an_agent_calls_another_mock_without_a_gateway() {
    let other = spawn("{log: memory}");
    let url = format!("http://{}/a2a/none", other.addr());
    let config =
        |url: &str| spawn(&format!("{{a2a: {{agents: {{self: {{calls: {{url: '{url}'}}}}}}}}}}"));
    let refused = send(&config(&url), &[("x-agent-path", "a")]);
    let called = &refused["result"]["message"]["metadata"]["called"];
    assert_eq!(called, &json!({"status": 404, "error": "-32600"}));
    send(&config(&url.replace("none", "echo")), &[("x-agent-path", "a")]);
    // The log is complete only when the calls' connections have ended.
    std::thread::sleep(Duration::from_millis(10));
    let log = finish(other);
    let paths: Vec<_> = log.iter().map(|r| r.rpc.as_deref().unwrap().path.clone()).collect();
    assert_eq!(paths, [Some("a".to_owned()), Some("a".to_owned())]);
    assert_eq!(log[1].rpc.as_deref().unwrap().version.as_deref(), Some("1.0"));
}
