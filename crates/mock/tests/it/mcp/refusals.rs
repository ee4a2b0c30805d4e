//! Messages that the MCP server rejects, with the status and the code.

use serde_json::{Value, json};

use super::{BOTH, CONFIG, INITIALIZE, JSON, call, code, message, open, send};
use crate::support::{Client, spawn};

/// Headers and body, and the status and code that they get.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, u16, i64);

#[test]
fn bad_input_gets_its_status_and_code_and_the_connection_stays() {
    let mock = spawn("{log: memory}");
    let mut client = Client::connect(&mock);
    let session = open(&mut client);
    let known = ("mcp-session-id", session.as_str());
    let ping = message(1, "ping", json!({}));
    let unknown_session = "0".repeat(32);
    let rows: [Case<'_>; 23] = [
        (&[known], "{", 400, -32_700),
        (&[known], "", 400, -32_700),
        (&[known], "[]", 400, -32_600),
        (&[known], r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32_600),
        (&[known], r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, -32_600),
        (&[known], r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32_600),
        (&[known], r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, 400, -32_602),
        (&[known], r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, 200, -32_601),
        (&[known], r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, 200, -32_601),
        (&[known], r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, -32_602),
        (&[known], &call(1, "no such", json!({})), 200, -32_602),
        (&[known], &call(1, "echo", json!([])), 200, -32_602),
        (&[known], INITIALIZE, 400, -32_600),
        (&[], &ping, 400, -32_600),
        (&[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 400, -32_600),
        (&[("mcp-session-id", &unknown_session)], &ping, 404, -32_600),
        (&[("mcp-session-id", "é")], &ping, 400, -32_600),
        (&[known, ("mcp-protocol-version", "2025-06-18")], &ping, 400, -32_600),
        (&[known, ("mcp-protocol-version", "1900-01-01")], &ping, 400, -32_022),
        (&[known, ("origin", "https://evil.example")], &ping, 403, -32_600),
        (&[], r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, 200, -32_602),
        (&[], &INITIALIZE.replace(r#""capabilities":{},"#, ""), 200, -32_602),
        (&[known, ("x-mock-status", "503")], &ping, 503, -32_603),
    ];
    for (headers, body, status, expected) in rows {
        let response = send(&mut client, headers, body);
        assert_eq!(code(&response), (status, expected), "{headers:?} {body}");
        if !response.complete {
            client = Client::connect(&mock);
        }
    }
    assert_eq!(send(&mut client, &[known], &ping).status, 200);
}

#[test]
fn versions_types_and_methods_are_checked_before_the_message() {
    let mock = spawn("{}");
    let mut client = Client::connect(&mock);
    let session = open(&mut client);
    let known = ("mcp-session-id", session.as_str());
    let ping = message(1, "ping", json!({}));
    let version = send(&mut client, &[("mcp-protocol-version", "1900-01-01")], &ping);
    assert_eq!(
        version.json()["error"]["data"],
        json!({"supported": ["2026-07-28", "2025-11-25", "2025-06-18"], "requested": "1900-01-01"})
    );
    for (headers, status) in [
        (vec![("accept", "text/html"), JSON, known], 406),
        (vec![BOTH, ("content-type", "text/plain"), known], 415),
        (vec![BOTH, known], 415),
    ] {
        assert_eq!(client.post("/mcp", &headers, &ping).status, status, "{headers:?}");
    }
    for (method, status) in [("GET", 405), ("PUT", 405), ("DELETE", 400)] {
        client.send(&format!("{method} /mcp HTTP/1.1\r\nhost: m\r\n\r\n"));
        let response = client.response();
        assert_eq!((response.status, response.header("allow").is_some()), (status, status == 405));
    }
    // An unknown version gets the newest with sessions; wrong arguments are the tool's error.
    let old = send(&mut client, &[], &INITIALIZE.replace("2025-11-25", "2024-11-05"));
    assert_eq!(old.json()["result"]["protocolVersion"], "2025-11-25");
    let wrong = send(&mut client, &[known], &call(1, "echo", json!({"text": 7})));
    assert_eq!(wrong.json()["result"]["isError"], json!(true));
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[test]
fn stateless_requests_describe_themselves() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    let meta: Value = serde_json::from_str(META).unwrap();
    let version = ("mcp-protocol-version", "2026-07-28");
    let discover = message("d", "server/discover", json!({"_meta": meta}));
    let response = send(&mut client, &[version, ("mcp-method", "server/discover")], &discover);
    assert_eq!(response.header("mcp-session-id"), None);
    assert_eq!(
        response.json()["result"],
        json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
            "supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18"],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo":
                {"name": "plimsoll-mock", "version": env!("CARGO_PKG_VERSION")}}})
    );
    let echo = |name: &str| {
        let params = json!({"name": name, "arguments": {"text": "a"}, "_meta": meta});
        message(1, "tools/call", params)
    };
    let call_header = ("mcp-method", "tools/call");
    let name = ("mcp-name", "echo");
    let good = send(&mut client, &[version, call_header, name], &echo("echo"));
    let content = json!([{"type": "text", "text": "a"}]);
    let result = json!({"resultType": "complete", "content": content, "isError": false});
    assert_eq!((good.status, &good.json()["result"]), (200, &result));
    let other = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let no_capabilities = message(1, "tools/list", json!({"_meta": other}));
    let list = ("mcp-method", "tools/list");
    for (headers, body, status, code_) in [
        (vec![version, call_header], echo("echo"), 400, -32_020),
        (vec![version, call_header, ("mcp-name", "slow")], echo("echo"), 400, -32_020),
        (vec![version, name], echo("echo"), 400, -32_020),
        (vec![call_header, name], echo("echo"), 400, -32_020),
        (vec![version, version, call_header, name], echo("echo"), 400, -32_020),
        (vec![version, call_header, name, name], echo("echo"), 400, -32_020),
        (
            vec![("mcp-protocol-version", "2027-01-01"), call_header, name],
            echo("echo"),
            400,
            -32_022,
        ),
        (vec![version, list], no_capabilities, 400, -32_602),
        (vec![version, list], message(1, "tools/list", json!({})), 400, -32_602),
        (
            vec![version, ("mcp-method", "ping")],
            message(1, "ping", json!({"_meta": meta})),
            404,
            -32_601,
        ),
        (vec![version, call_header, ("mcp-name", "no")], echo("no"), 400, -32_602),
        (vec![version], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), 400, -32_600),
    ] {
        let response = send(&mut client, &headers, &body);
        assert_eq!(code(&response), (status, code_), "{headers:?} {body}");
    }
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
    assert_eq!(send(&mut client, &[version], cancelled).status, 202);
}
