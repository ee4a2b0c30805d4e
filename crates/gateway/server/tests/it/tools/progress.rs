//! How far a call is: told to clients that ask for it.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use plimsoll_gateway_server::Gateway;
use serde_json::{Value, json};

use super::{RETAIL, behind, messages, mock, open_session, rpc};
use crate::support::client::{ClientResponse, send};
use crate::support::metric;
use crate::support::provider::Provider;

const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

fn call(tool: &str, token: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "c-1", "method": "tools/call",
        "params": {"name": tool, "arguments": {}, "_meta": {"progressToken": token}}})
}

/// The message of an event.
fn message(event: &str) -> Value {
    let data = event.strip_prefix("event: message\ndata: ");
    let data = data.and_then(|data| data.strip_suffix("\n\n"));
    serde_json::from_str(data.unwrap_or_else(|| panic!("{event:?}"))).unwrap()
}

fn progress(token: &Value, done: u32, total: u32) -> Value {
    let params = json!({"progressToken": token, "progress": done, "total": total});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

fn ask(gateway: &Gateway, headers: &[(&str, &str)], body: &Value) -> ClientResponse {
    let session = open_session(gateway);
    let headers: Vec<_> =
        headers.iter().copied().chain([("mcp-session-id", session.as_str())]).collect();
    rpc(gateway, "/mcp", &headers, body)
}

#[test]
fn a_client_that_asks_is_told_how_far_its_call_is() {
    for protocol in ["sessions", "stateless"] {
        let mock = mock("tools: {steps: {latency: 40ms, progress: 3}}");
        let gateway = behind(mock.addr(), &format!("protocol: {protocol}"), "");
        for token in [json!("my token"), json!(7)] {
            let reply = ask(&gateway, &[BOTH], &call("steps", &token));
            assert_eq!(
                (reply.status, reply.header("content-type")),
                (200, Some("text/event-stream"))
            );
            let told: Vec<Value> = reply.frames().iter().map(|event| message(event)).collect();
            let expected = [1, 2, 3].map(|done| progress(&token, done, 3));
            assert_eq!(told[..3], expected, "{protocol}");
            assert_eq!((told.len(), &told[3]["id"]), (4, &json!("c-1")), "{protocol}: {told:?}");
            assert_eq!(told[3]["result"]["isError"], false);
        }
        // Who takes no stream, or does not ask, gets the answer alone.
        let mut silent = call("steps", &Value::Null);
        silent["params"]["_meta"] = json!({});
        let json_only = ("accept", "application/json");
        for (accept, body) in [(json_only, call("steps", &json!(1))), (BOTH, silent)] {
            let reply = ask(&gateway, &[accept], &body);
            assert_eq!(reply.json()["result"]["isError"], false, "{body}");
        }
        let ok = "gateway_tool_calls_total{server=\"s\",outcome=\"ok\"} ";
        assert_eq!(metric(&gateway, ok), Some(4.0));
        drop(gateway);
        let log = messages(mock);
        let calls = log.iter().filter(|(_, rpc)| rpc.method.as_deref() == Some("tools/call"));
        let planned: Vec<u32> = calls.map(|(_, rpc)| rpc.progress).collect();
        assert_eq!(planned, [3, 3, 0, 0], "the server is asked for it where the client does");
    }
}

#[test]
fn progress_comes_before_the_answer_is_there_and_without_its_words() {
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let server = Provider::start(move |seen, wire| {
        let asked = seen.json();
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        match asked["method"].as_str().unwrap() {
            "server/discover" => {
                wire.json(200, &answer(json!({"supportedVersions": ["2026-07-28"]})))
            }
            "tools/list" => {
                let tool = json!({"name": "wait", "inputSchema": {"type": "object"}});
                wire.json(200, &answer(json!({"tools": [tool]})))
            }
            _ => {
                let token = &asked["params"]["_meta"]["progressToken"];
                let mut said = progress(token, 1, 2);
                said["params"]["message"] = json!("my card is 4111 1111 1111 1111");
                let foreign = progress(&json!("another"), 1, 2);
                wire.stream()?;
                wire.frame(&format!("data: {foreign}\n\ndata: {said}\n\n"))?;
                gone.lock().unwrap().recv().unwrap();
                wire.frame(&format!("data: {}\n\n", answer(json!({"content": []}))))?;
                wire.end()
            }
        }
    });
    let gateway = behind(server.addr, "timeout: 10m", "");
    let session = open_session(&gateway);
    let headers = [RETAIL, BOTH, ("mcp-session-id", &*session)];
    let body = call("wait", &json!("t")).to_string();
    let mut pending = send(gateway.addr(), "POST /mcp", &headers, body.as_bytes());
    assert_eq!(pending.head().status, 200);
    let event = String::from_utf8(pending.chunk().unwrap()).unwrap();
    assert_eq!(message(&event), progress(&json!("t"), 1, 2));
    go.send(()).unwrap();
    let event = String::from_utf8(pending.chunk().unwrap()).unwrap();
    assert_eq!(message(&event)["result"]["content"], json!([]));
    assert_eq!(pending.chunk(), Some(Vec::new()), "the stream ends");
}
