//! A2A agents: both versions, tasks, streams, cancellation, input, bounds, faults, and the log.

use plimsoll_mock::{LogRecord, RequestEnd, RpcOutcome};
use serde_json::{Value, json};

use crate::support::{Client, Response, finish, spawn};

mod refusals;
mod tasks;

const CONFIG: &str = r"{log: memory, workers: 2, a2a: {agents: {
    echo: {echo: true},
    steps: {answer: task, latency: 30ms, pieces: 3, result_bytes: 10},
    long: {answer: task, latency: 20s, pieces: 2, input_required_share: 1},
    asking: {answer: task, echo: true, input_required_share: 1},
    failing: {answer: task, failed_share: 1},
    broken: {rpc_error_share: 1, rpc_error_code: -32050}}}}";

const JSON: (&str, &str) = ("content-type", "application/json");
const V1: (&str, &str) = ("a2a-version", "1.0");
const V03: (&str, &str) = ("a2a-version", "0.3");

/// The names of one version.
struct Names {
    header: (&'static str, &'static str),
    send: &'static str,
    stream: &'static str,
    get: &'static str,
    cancel: &'static str,
}

const VERSIONS: [Names; 2] = [
    Names {
        header: V1,
        send: "SendMessage",
        stream: "SendStreamingMessage",
        get: "GetTask",
        cancel: "CancelTask",
    },
    Names {
        header: V03,
        send: "message/send",
        stream: "message/stream",
        get: "tasks/get",
        cancel: "tasks/cancel",
    },
];

impl Names {
    fn is_v1(&self) -> bool {
        self.header == V1
    }

    /// A message with further members.
    fn message(&self, text: &str, members: &Value) -> Value {
        let mut message = if self.is_v1() {
            json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]})
        } else {
            let parts = json!([{"kind": "text", "text": text}]);
            json!({"kind": "message", "messageId": "m", "role": "user", "parts": parts})
        };
        let message = message.as_object_mut().unwrap();
        message.extend(members.as_object().unwrap().clone());
        json!({"message": message})
    }

    fn state(&self, name: &str) -> String {
        if self.is_v1() {
            format!("TASK_STATE_{}", name.to_uppercase().replace('-', "_"))
        } else {
            name.to_owned()
        }
    }

    /// The content of a result that may have several kinds.
    fn inner(&self, result: &Value) -> Value {
        if !self.is_v1() {
            return result.clone();
        }
        let members = result.as_object().unwrap();
        assert_eq!(members.len(), 1, "{result}");
        members.values().next().unwrap().clone()
    }

    /// The text of parts.
    fn text(&self, parts: &Value) -> String {
        let parts = parts.as_array().unwrap().iter();
        parts
            .map(|part| {
                assert_eq!(part.get("kind").is_none(), self.is_v1(), "{part}");
                part["text"].as_str().unwrap()
            })
            .collect()
    }

    fn ask(&self, client: &mut Client, agent: &str, method: &str, params: &Value) -> Response {
        let body = request(7, method, params);
        client.post(&format!("/a2a/{agent}"), &[JSON, self.header], &body)
    }

    /// The result of a method.
    fn result(&self, client: &mut Client, agent: &str, method: &str, params: &Value) -> Value {
        let response = self.ask(client, agent, method, params);
        assert_eq!((response.status, response.header("content-type")), (200, Some(JSON.1)));
        let answer = response.json();
        assert_eq!((&answer["id"], answer.get("error")), (&json!(7), None), "{answer}");
        answer["result"].clone()
    }
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> String {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn code(response: &Response) -> (u16, i64) {
    (response.status, response.json()["error"]["code"].as_i64().unwrap())
}

/// The results of a stream.
fn events(response: &Response) -> Vec<Value> {
    let events = response.text().split_terminator("\n\n");
    let data = events.map(|event| event.strip_prefix("data: ").unwrap());
    let answers = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    answers
        .map(|answer| {
            assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(7), &json!("2.0")));
            answer["result"].clone()
        })
        .collect()
}

/// Agent, method, state, outcome and code.
type Row<'a> = (&'a str, &'a str, &'a str, RpcOutcome, Option<i64>);

fn row(record: &LogRecord) -> Option<Row<'_>> {
    let rpc = record.rpc.as_deref()?;
    Some((
        rpc.agent.as_deref().unwrap_or_default(),
        rpc.method.as_deref().unwrap_or_default(),
        rpc.state.as_deref().unwrap_or_default(),
        rpc.outcome,
        rpc.code,
    ))
}

fn rows(log: &[LogRecord]) -> Vec<Row<'_>> {
    log.iter().filter_map(row).collect()
}

#[test]
fn an_echo_comes_back_as_a_message_in_both_versions_and_the_log_has_each() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    for names in VERSIONS {
        let params = names.message("héllo \"世界\"", &json!({"contextId": "mine"}));
        let result = names.result(&mut client, "echo", names.send, &params);
        let message = names.inner(&result);
        assert_eq!(names.text(&message["parts"]), "héllo \"世界\"");
        assert_eq!(message["contextId"], "mine");
        let id = message["messageId"].as_str().unwrap();
        let expected = if names.is_v1() {
            let parts = json!([{"text": "héllo \"世界\""}]);
            let role = "ROLE_AGENT";
            json!({"message": {"messageId": id, "contextId": "mine", "role": role, "parts": parts}})
        } else {
            let parts = json!([{"kind": "text", "text": "héllo \"世界\""}]);
            json!({"kind": "message", "messageId": id, "contextId": "mine", "role": "agent",
                "parts": parts})
        };
        assert_eq!(result, expected);
        // The same as a stream of one event, and in a context that the mock names.
        let params = names.message("again", &json!({}));
        let streamed = names.ask(&mut client, "echo", names.stream, &params);
        let streamed = events(&streamed);
        assert_eq!(streamed.len(), 1);
        let message = names.inner(&streamed[0]);
        assert_eq!(names.text(&message["parts"]), "again");
        assert_eq!(message["contextId"].as_str().unwrap().len(), 32);
    }
    let body = request("x", "message/send", &VERSIONS[1].message("no header", &json!({})));
    let path = ("x-agent-path", "gateway,echo");
    let default = client.post("/a2a", &[JSON, path], &body).json();
    assert_eq!(default["result"]["parts"][0]["text"], "no header");
    let log = finish(mock);
    let send = |method| ("echo", method, "", RpcOutcome::Result, None);
    assert_eq!(
        rows(&log),
        [
            send("SendMessage"),
            send("SendStreamingMessage"),
            send("message/send"),
            send("message/stream"),
            send("message/send"),
        ]
    );
    let rpc = log[4].rpc.as_deref().unwrap();
    assert_eq!(
        (rpc.version.as_deref(), rpc.id.as_deref(), rpc.path.as_deref(), rpc.request_bytes),
        (Some("0.3"), Some("\"x\""), Some("gateway,echo"), body.len() as u64)
    );
    assert_eq!(log[0].rpc.as_deref().unwrap().session.as_deref(), Some("mine"));
    let streamed: Vec<bool> =
        log.iter().map(|record| record.rpc.as_deref().unwrap().streamed).collect();
    assert_eq!(streamed, [false, true, false, true, false]);
}

#[test]
fn faults_break_off_streams_and_answers() {
    let mock = spawn(CONFIG);
    let names = &VERSIONS[0];
    let work = request(7, names.stream, &names.message("work", &json!({})));
    for (fault, count, complete) in [
        ("cut@3", 3, false),
        ("truncate@3", 3, true),
        ("error@3", 4, true),
        ("stall@3:1ms", 6, true),
    ] {
        let headers = [JSON, names.header, ("x-mock-fault", fault)];
        let response = Client::connect(&mock).post("/a2a/steps", &headers, &work);
        let data: Vec<&str> = response.text().split_terminator("\n\n").collect();
        assert_eq!((data.len(), response.complete), (count, complete), "{fault}");
        let last: Value =
            serde_json::from_str(data[count - 1].strip_prefix("data: ").unwrap()).unwrap();
        let error = if fault == "error@3" { json!(-32_603) } else { Value::Null };
        assert_eq!(last["error"]["code"], error, "{fault}");
    }
    let echo = request(7, names.send, &names.message("a", &json!({})));
    for fault in ["reset", "cut@0"] {
        let headers = [JSON, names.header, ("x-mock-fault", fault)];
        assert!(!Client::connect(&mock).post("/a2a", &headers, &echo).complete, "{fault}");
    }
    let headers = [JSON, names.header, ("x-mock-fault", "429:2s"), ("x-mock-ttft", "1ms")];
    let limited = Client::connect(&mock).post("/a2a", &headers, &echo);
    assert_eq!((code(&limited), limited.header("retry-after")), ((429, -32_603), Some("2")));
    let giant = names.message(&"z".repeat(3_000_000), &json!({}));
    let mut client = Client::connect(&mock);
    let giant = names.inner(&names.result(&mut client, "echo", names.send, &giant));
    assert_eq!(names.text(&giant["parts"]).len(), 3_000_000);
    let log = finish(mock);
    assert_eq!(log.iter().filter(|record| record.fault.is_some()).count(), 7);
    let aborted = log.iter().filter(|record| record.end == Some(RequestEnd::Aborted)).count();
    assert_eq!(aborted, 3);
}

#[test]
fn cards_name_both_versions_and_need_no_key_as_agents_do() {
    let mock = spawn("{api_key: k, a2a: {agents: {one: {description: First}, two: {}}}}");
    let mut client = Client::connect(&mock);
    let card = client.get("/.well-known/agent-card.json").json();
    assert_eq!(card["supportedInterfaces"], json!([interface_json("1.0"), interface_json("0.3")]));
    assert_eq!(
        (&card["name"], &card["description"], &card["url"], &card["protocolVersion"]),
        (&json!("one"), &json!("First"), &json!("http://mock/a2a"), &json!("0.3.0"))
    );
    assert_eq!(card["capabilities"], json!({"streaming": true, "pushNotifications": false}));
    assert_eq!(client.get("/.well-known/agent.json").json(), card);
    let other = client.get("/a2a/two/.well-known/agent-card.json").json();
    assert_eq!((&other["name"], &other["url"]), (&json!("two"), &json!("http://mock/a2a/two")));
    assert_eq!(client.get("/a2a/none/.well-known/agent-card.json").status, 404);
    for path in ["/.well-known/agent.json", "/a2a/none/.well-known/agent.json"] {
        assert_eq!(client.post(path, &[], "").status, 405, "{path}");
    }
    let params = VERSIONS[0].message("a", &json!({}));
    let body = request(1, "SendMessage", &params);
    assert_eq!(client.post("/a2a", &[JSON, V1], &body).status, 401);
    assert_eq!(client.post("/a2a/one", &[JSON, V1], &body).status, 401);
    let known = client.post("/a2a", &[JSON, V1, ("authorization", "Bearer k")], &body);
    assert_eq!(known.status, 200);
}

fn interface_json(version: &str) -> Value {
    json!({"url": "http://mock/a2a", "protocolBinding": "JSONRPC", "protocolVersion": version})
}
