//! Servers that answer garbage, hang, stream for ever, or send giant results.

use std::time::Instant;

use serde_json::{Value, json};

use super::{call, get, kind, text, with_tools};
use crate::support::provider::{Provider, ReceivedRequest, ResponseWriter};
use crate::support::{crowd, metric, sleep_ms};

const TOOLS: [&str; 20] = [
    "good",
    "garbage",
    "html",
    "empty",
    "batch",
    "wrong-id",
    "text-id",
    "other-error",
    "result-list",
    "content-text",
    "deep",
    "giant",
    "giant-stream",
    "endless",
    "cut",
    "closed",
    "accepted",
    "moved",
    "status",
    "silent",
];

fn reply(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A server without sessions whose every tool but the first is broken in its own way.
fn server() -> Provider {
    Provider::start(|seen, wire| {
        let asked = seen.json();
        let id = &asked["id"];
        match asked["method"].as_str().unwrap() {
            "server/discover" => {
                wire.json(200, &reply(id, &json!({"supportedVersions": ["2026-07-28"]})))
            }
            "tools/list" => {
                let tools: Vec<Value> = TOOLS
                    .iter()
                    .map(|name: &&str| json!({"name": name, "inputSchema": {"type": "object"}}))
                    .collect();
                wire.json(200, &reply(id, &json!({"tools": tools})))
            }
            _ => misbehave(asked["params"]["name"].as_str().unwrap(), seen, wire),
        }
    })
}

fn misbehave(tool: &str, seen: &ReceivedRequest, wire: &mut ResponseWriter) -> std::io::Result<()> {
    let id = seen.json()["id"].clone();
    let good = json!({"content": [{"type": "text", "text": "fine"}]});
    let json_kind = "application/json";
    match tool {
        "garbage" => wire.whole(200, json_kind, "\u{0}\u{1}{{{"),
        "html" => wire.whole(200, "text/html", "<html>"),
        "empty" => wire.whole(200, json_kind, ""),
        "batch" => wire.json(200, &json!([reply(&id, &good)])),
        "wrong-id" => wire.json(200, &reply(&json!(id.as_u64().unwrap() + 1), &good)),
        "text-id" => wire.json(200, &reply(&json!(id.to_string()), &good)),
        "other-error" => wire
            .json(200, &json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": ""}})),
        "result-list" => wire.json(200, &reply(&id, &json!([]))),
        "content-text" => wire.json(200, &reply(&id, &json!({"content": "fine"}))),
        "deep" => {
            let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{deep}}}}}"#
            );
            wire.whole(200, json_kind, &body)
        }
        "giant" => {
            let giant = json!({"content": [{"type": "text", "text": "x".repeat(200_000)}]});
            wire.json(200, &reply(&id, &giant))
        }
        "giant-stream" | "endless" => {
            wire.stream()?;
            let bytes = if tool == "endless" { 10 } else { 10_000 };
            // Until the gateway has enough of it.
            for _ in 0..1_000 {
                wire.frame(&format!(": {}\n\n", "x".repeat(bytes)))?;
                sleep_ms(5);
            }
            Ok(())
        }
        "cut" => {
            wire.stream()?;
            wire.frame("data: {\"jsonrpc\":\"2.0\",")?;
            wire.end()
        }
        "closed" => Err(std::io::ErrorKind::ConnectionReset.into()),
        "accepted" => wire.whole(202, json_kind, ""),
        "moved" => wire.with(307, "text/plain", "location: http://127.0.0.1:1/\r\n", ""),
        "status" => wire.whole(503, "text/plain", "busy"),
        "silent" => {
            sleep_ms(3_000);
            Ok(())
        }
        _ => wire.json(200, &reply(&id, &good)),
    }
}

#[test]
fn each_broken_answer_is_an_error_in_time_and_the_next_call_works() {
    let server = server();
    let gateway = with_tools(
        &format!(
            "timeout: 700ms, result_bytes: 100KiB, allow: {{retail: ['s/*']}}, \
             servers: {{s: {{url: 'http://{}/mcp'}}}}",
            server.addr
        ),
        "",
    );
    super::up(&gateway);
    let started = Instant::now();
    for tool in TOOLS {
        let reply = call(&gateway, tool, &json!({}));
        let expected = match tool {
            "good" => (200, ""),
            "endless" | "silent" => (504, "upstream_timeout"),
            _ => (502, "upstream_error"),
        };
        assert_eq!((reply.status, kind(&reply).as_str()), expected, "{tool}: {reply:?}");
        if tool != "good" {
            let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with("tool server `s`: it"), "{tool}: {message}");
        }
        assert_eq!(text(&call(&gateway, "good", &json!({}))), "fine", "after {tool}");
    }
    for tool in TOOLS {
        // A call that broke off may have been carried out: it is never repeated.
        let calls =
            server.seen().iter().filter(|seen| seen.json()["params"]["name"] == tool).count();
        assert_eq!(calls, if tool == "good" { 21 } else { 1 }, "{tool}");
    }
    assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
    let counts = ["ok", "upstream_error", "upstream_timeout"].map(|outcome: &str| {
        let sample = format!("gateway_tool_calls_total{{server=\"s\",outcome=\"{outcome}\"}} ");
        metric(&gateway, &sample)
    });
    assert_eq!(counts, [Some(21.0), Some(17.0), Some(2.0)]);
}

#[test]
fn a_server_that_hangs_holds_up_nobody_else() {
    let server = server();
    let gateway = with_tools(
        &format!(
            "timeout: 1s, allow: {{retail: ['s/*', 'local/*']}}, \
             servers: {{s: {{url: 'http://{}/mcp'}}}}",
            server.addr
        ),
        "",
    );
    super::up(&gateway);
    let replies = crowd(|number| {
        let tool = ["silent", "time", "good", "endless"][number % 4];
        call(&gateway, tool, &json!({}))
    });
    for (number, reply) in replies.iter().enumerate() {
        let expected = [504, 200, 200, 504][number % 4];
        assert_eq!(reply.status, expected, "{number}: {reply:?}");
    }
    let memory = metric(&gateway, "gateway_memory_bytes ").unwrap();
    assert!(memory < 1e6, "{memory}");
}

#[test]
fn results_do_not_take_more_memory_than_there_is() {
    let server = server();
    let gateway = with_tools(
        &format!(
            "allow: {{retail: ['s/*']}}, servers: {{s: {{url: 'http://{}/mcp'}}}}",
            server.addr
        ),
        "server: {memory: 150KiB}",
    );
    super::up(&gateway);
    let reply = call(&gateway, "giant", &json!({}));
    assert_eq!((reply.status, kind(&reply).as_str()), (503, "overloaded"));
    assert_eq!(text(&call(&gateway, "good", &json!({}))), "fine");
    assert_eq!(get(gateway.addr(), "/health").status, 200);
}
