//! MCP over Streamable HTTP: both eras, every refusal, cancellation, and the log.

use std::time::{Duration, Instant};

use plimsoll_mock::{LogRecord, Mock, RequestEnd, RpcOutcome};
use serde_json::{Value, json};

use crate::support::{Client, Response, finish, spawn, wait};

mod refusals;

const CONFIG: &str = r"{log: memory, mcp: {page: 2, tools: {
    echo: {echo: true, input: {type: object, properties: {text: {type: string}}, required: [text]}},
    steps: {latency: 30ms, progress: 2, result_bytes: 10},
    slow: {latency: 20s, progress: 1},
    broken: {rpc_error_share: 1, rpc_error_code: -32050},
    failing: {tool_error_share: 1}}}}";

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{
    "protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");

fn message(id: impl Into<Value>, method: &str, params: impl Into<Value>) -> String {
    let (id, params): (Value, Value) = (id.into(), params.into());
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn send(client: &mut Client, headers: &[(&str, &str)], body: &str) -> Response {
    client.post("/mcp", &[&[BOTH, JSON], headers].concat(), body)
}

/// Opens a session; returns its id.
fn open(client: &mut Client) -> String {
    let response = send(client, &[], INITIALIZE);
    assert_eq!(response.status, 200);
    let session = response.header("mcp-session-id").unwrap().to_owned();
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let accepted = send(client, &[("mcp-session-id", &session)], ready);
    assert_eq!(
        (accepted.status, accepted.body.len(), accepted.header("content-type")),
        (202, 0, None)
    );
    session
}

fn call(id: u32, tool: &str, arguments: impl Into<Value>) -> String {
    let arguments: Value = arguments.into();
    message(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn code(response: &Response) -> (u16, i64) {
    (response.status, response.json()["error"]["code"].as_i64().unwrap())
}

/// The data of each event of a stream.
fn events(response: &Response) -> Vec<Value> {
    let events = response.text().split_terminator("\n\n");
    let data = events.map(|event| event.strip_prefix("event: message\ndata: ").unwrap());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn a_session_is_opened_used_and_ended_and_the_log_has_each_step() {
    use RpcOutcome::{Accepted, Error, Result, SessionEnded, ToolError};

    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    let first = send(&mut client, &[], INITIALIZE);
    assert_eq!(
        first.json(),
        json!({"jsonrpc": "2.0", "id": 0, "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "plimsoll-mock", "version": env!("CARGO_PKG_VERSION")}}})
    );
    let session = open(&mut client);
    assert_ne!(first.header("mcp-session-id").unwrap(), session);
    let with = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let answer = send(&mut client, &with, &call(1, "echo", json!({"text": "héllo"})));
    assert_eq!(
        answer.text(),
        r#"{"id":1,"jsonrpc":"2.0","result":{"content":[{"text":"héllo","type":"text"}],"isError":false}}"#
    );
    let failed = send(&mut client, &with, &call(2, "failing", json!({})));
    assert_eq!((failed.status, &failed.json()["result"]["isError"]), (200, &json!(true)));
    let broken = send(&mut client, &with, &call(3, "broken", json!({})));
    assert_eq!(code(&broken), (200, -32_050));
    client.send(&format!("DELETE /mcp HTTP/1.1\r\nhost: m\r\nmcp-session-id: {session}\r\n\r\n"));
    assert_eq!(client.response().status, 200);
    let ended = send(&mut client, &with, &message("x", "ping", json!({})));
    assert_eq!((ended.status, &ended.json()["id"]), (404, &json!("x")));

    let log = finish(mock);
    let rows: Vec<_> = log.iter().map(row).collect();
    let tool = |id, name, outcome, code| {
        (Some("tools/call"), Some(id), Some(name), outcome, code, Some(session.as_str()))
    };
    let known = Some(session.as_str());
    assert_eq!(
        rows[1..],
        [
            (Some("initialize"), Some("0"), None, Result, None, known),
            (Some("notifications/initialized"), None, None, Accepted, None, known),
            tool("1", "echo", Result, None),
            tool("2", "failing", ToolError, None),
            tool("3", "broken", Error, Some(-32_050)),
            (None, None, None, SessionEnded, None, known),
            (Some("ping"), Some("\"x\""), None, Error, Some(-32_600), known),
        ]
    );
    assert!(log.iter().all(|record| record.end == Some(RequestEnd::Completed)));
    let rpc = log[3].rpc.as_ref().unwrap();
    let body = call(1, "echo", json!({"text": "héllo"}));
    assert_eq!(
        (rpc.request_bytes, rpc.version.as_deref()),
        (body.len() as u64, Some("2025-11-25"))
    );
    assert_eq!(log[3].chunks[0].bytes, answer.body.len() as u64);
}

type Row<'a> =
    (Option<&'a str>, Option<&'a str>, Option<&'a str>, RpcOutcome, Option<i64>, Option<&'a str>);

fn row(record: &LogRecord) -> Row<'_> {
    let rpc = record.rpc.as_deref().unwrap();
    let (method, id) = (rpc.method.as_deref(), rpc.id.as_deref());
    (method, id, rpc.name.as_deref(), rpc.outcome, rpc.code, rpc.session.as_deref())
}

#[test]
fn lists_come_in_pages_and_resources_and_prompts_are_read() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    let session = open(&mut client);
    let mut ask = |method: &str, params: Value| {
        let with = [("mcp-session-id", session.as_str())];
        send(&mut client, &with, &message(1, method, params)).json()
    };
    let mut names = Vec::new();
    let mut params = json!({});
    for page in 0..3 {
        let result = &ask("tools/list", params)["result"];
        let tools = result["tools"].as_array().unwrap();
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        assert_eq!(result.get("nextCursor").is_some(), page < 2);
        params = json!({"cursor": result["nextCursor"]});
    }
    assert_eq!(names, ["broken", "echo", "failing", "slow", "steps"]);
    for cursor in [json!("5"), json!("x"), json!(2), json!("-1")] {
        assert_eq!(ask("tools/list", json!({"cursor": cursor}))["error"]["code"], -32_602);
    }
    assert_eq!(ask("resources/list", json!({}))["result"]["resources"][0]["uri"], "mock://notes");
    assert_eq!(
        ask("resources/templates/list", json!({}))["result"],
        json!({"resourceTemplates": []})
    );
    let read = ask("resources/read", json!({"uri": "mock://notes"}));
    assert_eq!(read["result"]["contents"][0]["text"].as_str().unwrap().len(), 1_024);
    assert_eq!(ask("resources/read", json!({"uri": "mock://no"}))["error"]["code"], -32_002);
    assert_eq!(ask("prompts/list", json!({}))["result"]["prompts"][0]["name"], "greeting");
    let prompt = ask("prompts/get", json!({"name": "greeting", "arguments": {"name": "Ada"}}));
    let text = json!({"type": "text", "text": "Say hello to Ada."});
    assert_eq!(prompt["result"]["messages"], json!([{"role": "user", "content": text}]));
    for params in [json!({"name": "greeting"}), json!({"name": "no"}), json!({})] {
        assert_eq!(ask("prompts/get", params)["error"]["code"], -32_602);
    }
    assert_eq!(ask("ping", json!({}))["result"], json!({}));
}

#[test]
fn progress_comes_before_the_answer_in_the_form_that_the_client_accepts() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    let session = open(&mut client);
    let with = ("mcp-session-id", session.as_str());
    let steps = json!({"name": "steps", "_meta": {"progressToken": "t"}});
    let steps = message(7, "tools/call", steps);
    let start = Instant::now();
    let streamed = send(&mut client, &[with], &steps);
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    let events_ = events(&streamed);
    assert_eq!(events_[..2], [progress_message(1), progress_message(2)]);
    assert_eq!((events_.len(), &events_[2]["id"]), (3, &json!(7)));
    let text = events_[2]["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.len(), 10);
    // Only JSON accepted: no stream, and so no progress. Only streams accepted: all is a stream.
    let only = |kind| [("accept", kind), JSON, with];
    let plain = client.post("/mcp", &only("application/json"), &steps);
    assert_eq!(plain.json()["id"], 7);
    let ping = message(1, "ping", json!({}));
    let stream = client.post("/mcp", &only("text/event-stream"), &ping);
    assert_eq!(events(&stream), [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
    let log = finish(mock);
    let rpc = |index: usize| log[index].rpc.as_ref().unwrap();
    let form = |index| (rpc(index).streamed, rpc(index).progress);
    assert_eq!([form(2), form(3), form(4)], [(true, 2), (false, 0), (true, 0)]);
    // One chunk for each event, each due 10 ms after the one before.
    let due: Vec<u64> =
        log[2].chunks.iter().map(|chunk| chunk.due - log[2].body_complete).collect();
    assert_eq!(due, [10_000_000, 20_000_000, 30_000_000]);
}

fn progress_message(done: u32) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": "t", "progress": done, "total": 2}})
}

/// Starts a call that takes 20 s on its own connection.
fn start_slow(mock: &Mock, session: &str, accept: (&str, &str)) -> Client {
    let mut client = Client::connect(mock);
    let params = json!({"name": "slow", "_meta": {"progressToken": 1}});
    let before = mock.stats().requests;
    let body = message(5, "tools/call", params);
    client.send_post("/mcp", &[accept, JSON, ("mcp-session-id", session)], &body);
    wait(|| mock.stats().requests > before);
    client
}

#[test]
fn a_cancelled_call_ends_at_once_and_so_do_the_calls_of_an_ended_session() {
    for streamed in [true, false] {
        for by_end in [false, true] {
            let mock = spawn(CONFIG);
            let mut client = Client::connect(&mock);
            let session = open(&mut client);
            let with = [("mcp-session-id", session.as_str())];
            let accept = if streamed { BOTH } else { ("accept", "application/json") };
            let mut slow = start_slow(&mock, &session, accept);
            // The call is registered a moment after its request is counted.
            std::thread::sleep(Duration::from_millis(100));
            let start = Instant::now();
            if by_end {
                client.send(&format!(
                    "DELETE /mcp HTTP/1.1\r\nhost: m\r\nmcp-session-id: {session}\r\n\r\n"
                ));
                assert_eq!(client.response().status, 200);
            } else {
                let busy = send(&mut client, &with, &call(5, "slow", json!({})));
                assert_eq!(code(&busy), (400, -32_600));
                let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": 5}});
                assert_eq!(send(&mut client, &with, &cancel.to_string()).status, 202);
            }
            let response = slow.response();
            assert!(response.complete && start.elapsed() < Duration::from_secs(9));
            if streamed {
                assert_eq!(response.text(), "");
            } else {
                assert_eq!(code(&response), (200, -32_800));
            }
            let log = finish(mock);
            let cancelled = log.iter().find(|r| row(r).2 == Some("slow")).unwrap();
            assert_eq!(row(cancelled).3, RpcOutcome::Cancelled);
            assert_eq!(cancelled.end, Some(RequestEnd::Completed));
        }
    }
}

#[test]
fn sessions_are_bounded_and_expire() {
    let mock = spawn("{mcp: {max_sessions: 2, session_timeout: 300ms}}");
    let mut client = Client::connect(&mock);
    let first = open(&mut client);
    open(&mut client);
    let refused = send(&mut client, &[], INITIALIZE);
    assert_eq!(code(&refused), (503, -32_603));
    std::thread::sleep(Duration::from_millis(500));
    let ping = message(1, "ping", json!({}));
    assert_eq!(send(&mut client, &[("mcp-session-id", &first)], &ping).status, 404);
    open(&mut client);
    open(&mut client);
}

#[test]
fn faults_break_off_streams_and_answers() {
    let mock = spawn(CONFIG);
    let session = open(&mut Client::connect(&mock));
    let with = ("mcp-session-id", session.as_str());
    let steps = json!({"name": "steps", "_meta": {"progressToken": "t"}});
    let steps = message(7, "tools/call", steps);
    for (fault, events_, complete) in [
        ("cut@1", 1, false),
        ("truncate@1", 1, true),
        ("error@1", 2, true),
        ("stall@1:1ms", 3, true),
    ] {
        let response = send(&mut Client::connect(&mock), &[with, ("x-mock-fault", fault)], &steps);
        assert_eq!((events(&response).len(), response.complete), (events_, complete), "{fault}");
        let last = events(&response).pop().unwrap();
        let error = if fault == "error@1" { json!(-32_603) } else { Value::Null };
        assert_eq!(last["error"]["code"], error, "{fault}");
    }
    for fault in ["reset", "cut@0"] {
        let echo = call(1, "echo", json!({"text": "abc"}));
        let headers = [("x-mock-fault", fault), ("accept", "application/json"), JSON, with];
        let response = Client::connect(&mock).post("/mcp", &headers, &echo);
        assert!(!response.complete, "{fault}");
    }
    let large = json!({"text": "z".repeat(3_000_000)});
    let giant = send(&mut Client::connect(&mock), &[with], &call(1, "echo", large));
    assert_eq!(giant.json()["result"]["content"][0]["text"].as_str().unwrap().len(), 3_000_000);
}

#[test]
fn a_key_is_needed_where_one_is_configured_and_the_default_has_three_tools() {
    let mock = spawn("{api_key: k}");
    let mut client = Client::connect(&mock);
    assert_eq!(send(&mut client, &[], INITIALIZE).status, 401);
    assert_eq!(send(&mut client, &[("x-api-key", "k")], INITIALIZE).status, 200);
    let open_mock = spawn("{}");
    let mut client = Client::connect(&open_mock);
    let session = open(&mut client);
    let list = message(1, "tools/list", json!({}));
    let tools = send(&mut client, &[("mcp-session-id", &session)], &list).json();
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "failing", "slow"]);
}
