//! The attack table of the MCP routes: what each gets, and that nothing of it reaches a server.

use serde_json::json;

use super::mcp::stateless;
use super::{behind, count, echo_mock, messages, open_session, request};
use crate::support::client::{Headers, ask, raw};

/// Messages, their status and code.
const MESSAGES: &[(&str, u16, Option<i64>)] = &[
    ("", 400, Some(-32_700)),
    ("{", 400, Some(-32_700)),
    ("<html>", 400, Some(-32_700)),
    ("[]", 400, Some(-32_600)),
    ("\"ping\"", 400, Some(-32_600)),
    ("{}", 400, Some(-32_600)),
    (r#"{"id":1,"method":"ping"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, 400, Some(-32_600)),
    (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, 400, Some(-32_602)),
    (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, 200, Some(-32_601)),
    (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, Some(-32_602)),
    (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#, 200, Some(-32_602)),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
        200,
        Some(-32_602),
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, 400, Some(-32_600)),
];

#[test]
fn messages_that_are_none_are_refused_and_reach_no_server() {
    let mock = echo_mock("say");
    let gateway = behind(mock.addr(), "", "server: {body_bytes: 64KiB}");
    let session = open_session(&gateway);
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"say","arguments":{arguments}}}}}"#
        )
    };
    let one = call(r#"{"text":"x"}"#);
    let deep = call(&format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65)));
    let huge = call(&format!("{{\"text\":\"{}\"}}", "x".repeat(70_000)));
    let endless = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}",
        "[".repeat(60_000)
    );
    let made: [(&str, u16, Option<i64>); 6] = [
        (&endless, 400, Some(-32_700)),
        (&format!("[{one},{one}]"), 400, Some(-32_600)),
        (&call("[]"), 200, Some(-32_602)),
        (&call("\"{}\""), 200, Some(-32_602)),
        (&deep, 200, Some(-32_050)),
        (&huge, 413, None),
    ];
    for (body, status, code) in MESSAGES.iter().chain(&made) {
        let headers = [super::RETAIL, ("mcp-session-id", session.as_str())];
        let reply = ask(gateway.addr(), "POST /mcp", &headers, body.as_bytes());
        let shown = &body[..body.len().min(80)];
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].as_i64()),
            (*status, *code),
            "{shown}"
        );
    }
    drop(gateway);
    assert_eq!(count(&messages(mock), "tools/call"), 0);
}

#[test]
fn heads_that_contradict_themselves_are_refused() {
    let mock = echo_mock("say");
    let gateway = behind(mock.addr(), "", "");
    let session = open_session(&gateway);
    let ping = request("ping", json!({})).to_string();
    let mine = ("mcp-session-id", session.as_str());
    let cases: [(Headers<'_>, u16); 16] = [
        (&[mine], 200),
        (&[], 400),
        (&[("mcp-session-id", "")], 404),
        (&[("mcp-session-id", "nobody")], 404),
        (&[("mcp-session-id", "00000000000000000000000000000000")], 404),
        (&[mine, mine], 400),
        (&[mine, ("mcp-session-id", "nobody")], 400),
        (&[mine, ("mcp-protocol-version", "2025-06-18")], 400),
        (&[mine, ("mcp-protocol-version", "2025-11-25")], 200),
        (&[mine, ("mcp-protocol-version", "1999-01-01")], 400),
        (&[mine, ("mcp-protocol-version", "2026-07-28")], 400),
        (&[mine, ("accept", "text/html")], 406),
        (&[mine, ("content-type", "text/plain")], 415),
        (&[mine, ("content-encoding", "gzip")], 415),
        (&[mine, ("origin", "http://evil.example")], 403),
        (&[mine, ("connection", "mcp-session-id")], 400),
    ];
    for (headers, status) in cases {
        let all: Vec<_> = [super::RETAIL].into_iter().chain(headers.iter().copied()).collect();
        let found = ask(gateway.addr(), "POST /mcp", &all, ping.as_bytes()).status;
        assert_eq!(found, status, "{headers:?}");
    }
    let (body, honest) =
        stateless("tools/call", json!({"name": "say", "arguments": {"text": "x"}}));
    for (name, value, status) in [
        ("mcp-name", "other", 400),
        ("mcp-name", "", 400),
        ("mcp-name", "=?base64?c2F5?=", 200),
        ("mcp-name", "=?base64?c2F5", 400),
        ("mcp-method", "tools/list", 400),
        ("mcp-protocol-version", "2025-11-25", 400),
    ] {
        let headers =
            honest.iter().map(|(known, old)| (*known, if *known == name { value } else { old }));
        let all: Vec<_> = [super::RETAIL].into_iter().chain(headers).collect();
        let found = ask(gateway.addr(), "POST /mcp", &all, body.to_string().as_bytes()).status;
        assert_eq!(found, status, "{name}: {value}");
    }
    drop(gateway);
    assert_eq!(count(&messages(mock), "tools/call"), 1, "the honest one");
}

#[test]
fn two_messages_in_one_write_are_two_and_a_hidden_one_is_none() {
    let mock = echo_mock("say");
    let gateway = behind(mock.addr(), "", "");
    let body = json!({"name": "say", "arguments": {"text": "x"}}).to_string();
    let hidden = format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\nx-tenant-id: retail\r\ncontent-length: {}\r\n\r\n{body}",
        super::CALL,
        body.len()
    );
    // The second one stands in the body of the first, which is chunked and of a length.
    let smuggled = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-tenant-id: retail\r\ncontent-length: {}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
        hidden.len() + 5
    );
    assert_eq!(raw(gateway.addr(), smuggled.as_bytes()).reply().status, 400);
    drop(gateway);
    assert_eq!(count(&messages(mock), "tools/call"), 0);
}
