//! Recorded clients of tool servers, sent to the gateway again as they came; and recorded servers
//! behind the gateway.

use serde_json::{Value, json};

use super::{behind, call, count, messages, mock, text, up, with_tools};
use crate::support::client::raw;
use crate::support::provider::Provider;
use crate::support::recorded::{Recorded, documents, recorded, recorded_answers};

/// Status and code of the error that the gateway answers with, or no code.
fn expected(request: &Recorded) -> (u16, Option<i64>) {
    let asked = request.json();
    let stateless = asked["params"]
        .get("_meta")
        .is_some_and(|meta| meta.get("io.modelcontextprotocol/protocolVersion").is_some());
    let error = |status, code| (if stateless { status } else { 200 }, Some(code));
    match (asked["method"].as_str(), asked["params"]["name"].as_str()) {
        (Some(method), _) if method.starts_with("notifications/") => (202, None),
        (Some(method), _) if method.starts_with("resources/") || method.starts_with("prompts/") => {
            error(404, -32_601)
        }
        (_, Some("no such tool")) => error(400, -32_602),
        (Some(_), _) => (200, None),
        (None, _) if request.method() == "DELETE" => (204, None),
        (None, _) => (405, None),
    }
}

#[test]
fn recorded_clients_are_answered_and_their_calls_reach_the_server_once() {
    for name in [
        "mcp-python-2025-11-25",
        "mcp-python-2026-07-28",
        "mcp-typescript-2025-11-25",
        "mcp-typescript1-2025-11-25",
        "mcp-typescript-2026-07-28",
    ] {
        let mock = mock("tools: {slow: {latency: 20ms}, failing: {tool_error_share: 1}}");
        let gateway = behind(mock.addr(), "", "");
        let mut session = None;
        let mut calls = 0;
        for request in recorded(name) {
            let known = request.header("mcp-session-id");
            let bytes = request.bytes("x-tenant-id: retail\r\n", known, session.as_deref());
            let reply = raw(gateway.addr(), &bytes).reply();
            let answer = documents(&reply).pop().unwrap_or_default();
            let code = answer["error"]["code"].as_i64();
            let case = || format!("{name}: {reply:?} of {}", String::from_utf8_lossy(&bytes));
            assert_eq!((reply.status, code), expected(&request), "{}", case());
            let asked = request.json();
            if asked.get("id").is_some() {
                assert_eq!(answer["id"], asked["id"], "{}", case());
            }
            match asked["params"]["name"].as_str() {
                Some("echo") => {
                    let text = &asked["params"]["arguments"]["text"];
                    assert_eq!(&answer["result"]["content"][0]["text"], text, "{}", case());
                }
                Some(tool @ ("slow" | "failing")) => {
                    calls += 1;
                    let failed = answer["result"]["isError"].as_bool().unwrap_or_default();
                    assert_eq!(failed, tool == "failing", "{}", case());
                }
                _ => {}
            }
            let opened = reply.header("mcp-session-id").map(str::to_owned);
            session = opened.or(session);
            if asked["method"] == "tools/list" {
                let names: Vec<&Value> = answer["result"]["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|t| &t["name"])
                    .collect();
                assert!(names.contains(&&json!("slow")), "{}", case());
            }
        }
        drop(gateway);
        assert!(calls >= 2, "{name}");
        assert_eq!(count(&messages(mock), "tools/call"), calls, "{name}");
    }
}

/// Where the answer to a message is among the recorded ones, in the order in which
/// `scripts/sdk/record` asks.
fn place(asked: &Value, sessions: bool) -> usize {
    let opened = if sessions { 2 } else { 1 };
    match (asked["method"].as_str().unwrap(), asked["params"]["name"].as_str()) {
        ("initialize" | "server/discover", _) => 0,
        ("notifications/initialized", _) => 1,
        ("tools/list", _) => opened,
        ("tools/call", Some("echo")) => opened + 1,
        ("tools/call", Some("slow")) => opened + 2,
        ("tools/call", Some("fail")) => opened + 3,
        other => panic!("it was not recorded: {other:?}"),
    }
}

/// A server that answers as a recorded one did, with the ids of the messages that it gets.
fn replay(name: &str, sessions: bool) -> Provider {
    let answers = recorded_answers(name);
    Provider::start(move |seen, wire| {
        let asked: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        if asked.is_null() {
            return wire.whole(200, "text/plain", "");
        }
        let place = place(&asked, sessions);
        let answer = &answers[place];
        let id = |id: &dyn std::fmt::Display| format!("\"id\":{id}");
        let body = answer.body.replace(&id(&(place + 1)), &id(&asked["id"]));
        let session = answer.header("mcp-session-id");
        let lines = session.map(|session| format!("mcp-session-id: {session}\r\n"));
        let kind = answer.header("content-type").unwrap_or("text/plain");
        wire.with(answer.status(), kind, &lines.unwrap_or_default(), &body)
    })
}

#[test]
fn recorded_servers_work_behind_the_gateway() {
    for (sdk, revisions) in [
        ("python", &["2025-11-25", "2026-07-28"][..]),
        ("typescript", &["2025-11-25", "2026-07-28"]),
        ("typescript1", &["2025-11-25"]),
    ] {
        for revision in revisions {
            for form in ["json", "events"] {
                let name = format!("mcp-{sdk}-{revision}-{form}");
                let sessions = *revision < "2026";
                let server = replay(&name, sessions);
                let protocol = if sessions { "sessions" } else { "stateless" };
                let gateway = with_tools(
                    &format!(
                        "servers: {{s: {{url: 'http://{}/mcp', protocol: {protocol}}}}}, \
                         local: [], allow: {{retail: ['s/*']}}",
                        server.addr
                    ),
                    "",
                );
                up(&gateway);
                let echoed = call(&gateway, "echo", &json!({"text": "as recorded"}));
                assert_eq!((echoed.status, text(&echoed).as_str()), (200, "héllo\n\"世界\""));
                let slow = call(&gateway, "slow", &json!({}));
                assert_eq!((slow.status, text(&slow).as_str()), (200, "done"), "{name}");
                let failed = call(&gateway, "fail", &json!({})).json();
                assert_eq!(failed["result"]["isError"], true, "{name}: {failed}");
                let unknown = call(&gateway, "nobody", &json!({}));
                assert_eq!(unknown.status, 404, "{name}: {unknown:?}");
                drop(gateway);
                let calls =
                    server.seen().iter().filter(|seen| seen.body.contains("tools/call")).count();
                assert_eq!(calls, 3, "{name}: each call came once");
            }
        }
    }
}
