//! The gateway as an MCP server, in both eras.

use serde_json::{Value, json};

use super::{behind, count, echo_mock, messages, mock, open_session, request, rpc, with_tools};
use crate::support::client::{Headers, ask, get};

const STATELESS: &str = "2026-07-28";

/// A request of the stateless era, and its headers.
pub(super) fn stateless(method: &str, mut params: Value) -> (Value, Vec<(&'static str, String)>) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers =
        vec![("mcp-protocol-version", STATELESS.to_owned()), ("mcp-method", method.to_owned())];
    headers.extend(params["name"].as_str().map(|name| ("mcp-name", name.to_owned())));
    (request(method, params), headers)
}

pub(super) fn send_stateless(
    gateway: &plimsoll_gateway_server::Gateway,
    method: &str,
    params: Value,
) -> crate::support::client::ClientResponse {
    let (body, headers) = stateless(method, params);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    rpc(gateway, "/mcp", &headers, &body)
}

#[test]
fn a_session_from_its_handshake_to_its_end() {
    let mock = echo_mock("say");
    let gateway = behind(mock.addr(), "", "name: front");
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let opened = rpc(&gateway, "/mcp", &[], &request("initialize", params));
    let result = opened.json()["result"].clone();
    assert_eq!(
        (&result["protocolVersion"], &result["serverInfo"]["name"]),
        (&json!("2025-06-18"), &json!("front"))
    );
    assert_eq!(result["capabilities"], json!({"tools": {}}));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(session.len(), 32);
    let headers: Headers<'_> =
        &[("mcp-session-id", &session), ("mcp-protocol-version", "2025-06-18")];
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let accepted = rpc(&gateway, "/mcp", headers, &notification);
    assert_eq!((accepted.status, accepted.text().as_str()), (202, ""));
    let list = rpc(&gateway, "/mcp", headers, &request("tools/list", json!({}))).json();
    let names: Vec<_> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["add", "echo", "json_get", "say", "time"]);
    assert_eq!(list["result"].get("resultType"), None, "that is of the other era");
    let body = json!({"jsonrpc": "2.0", "id": "x-1", "method": "tools/call",
        "params": {"name": "say", "arguments": {"text": "héllo"}, "_meta": {"progressToken": 1}}});
    let reply = rpc(&gateway, "/mcp", headers, &body);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let content = json!([{"type": "text", "text": "héllo"}]);
    let expected =
        json!({"jsonrpc": "2.0", "id": "x-1", "result": {"content": content, "isError": false}});
    assert_eq!(reply.json(), expected);
    let ping = rpc(&gateway, "/mcp", headers, &request("ping", json!({}))).json();
    assert_eq!(ping, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let all: Vec<_> = [super::RETAIL].into_iter().chain(headers.iter().copied()).collect();
    assert_eq!(ask(gateway.addr(), "DELETE /mcp", &all, b"").status, 204);
    assert_eq!(rpc(&gateway, "/mcp", headers, &request("ping", json!({}))).status, 404);
    drop(gateway);
    assert_eq!(count(&messages(mock), "tools/call"), 1);
}

#[test]
fn requests_that_say_all_themselves() {
    let mock = echo_mock("say");
    let gateway = behind(mock.addr(), "protocol: sessions", "name: front");
    let found = send_stateless(&gateway, "server/discover", json!({})).json()["result"].clone();
    assert_eq!(found["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18"]));
    assert_eq!(
        (&found["resultType"], &found["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    let list = send_stateless(&gateway, "tools/list", json!({})).json()["result"].clone();
    assert_eq!((list["tools"].as_array().unwrap().len(), &list["ttlMs"]), (5, &json!(0)));
    let call = json!({"name": "say", "arguments": {"text": "hi"}});
    let reply = send_stateless(&gateway, "tools/call", call);
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    let result = reply.json()["result"].clone();
    assert_eq!(
        (&result["resultType"], &result["content"][0]["text"]),
        (&json!("complete"), &json!("hi"))
    );
    for (method, status, code) in
        [("ping", 404, -32_601), ("initialize", 404, -32_601), ("resources/list", 404, -32_601)]
    {
        let reply = send_stateless(&gateway, method, json!({}));
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].as_i64()),
            (status, Some(code)),
            "{method}"
        );
    }
    drop(gateway);
    assert_eq!(count(&messages(mock), "tools/call"), 1);
}

#[test]
fn the_route_of_the_baseline_needs_no_handshake() {
    let gateway = with_tools("allow: {retail: [add]}", "");
    let add = request("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
    let reply = rpc(&gateway, "/mcp/message", &[], &add);
    assert_eq!(
        (reply.status, &reply.json()["result"]["structuredContent"]),
        (200, &json!({"sum": 3}))
    );
    let list = rpc(&gateway, "/mcp/message", &[], &request("tools/list", json!({}))).json();
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1);
    let session = open_session(&gateway);
    let with: Headers<'_> = &[("mcp-session-id", &session)];
    assert_eq!(rpc(&gateway, "/mcp/message", with, &add).status, 200);
    let wrong: Headers<'_> = &[("mcp-session-id", "nobody")];
    assert_eq!(rpc(&gateway, "/mcp/message", wrong, &add).status, 404);
    for line in ["GET /mcp/message", "DELETE /mcp/message", "GET /mcp", "PUT /mcp"] {
        let reply = ask(gateway.addr(), line, &[super::RETAIL], b"");
        assert_eq!((reply.status, reply.header("allow").is_some()), (405, true), "{line}");
    }
}

#[test]
fn errors_of_calls_have_their_code_and_reason() {
    let mock = mock(
        "tools: {say: {echo: true}, bad: {rpc_error_share: 1, rpc_error_code: -32099}, \
         sad: {tool_error_share: 1}, secret: {}}",
    );
    let gateway = with_tools(
        &format!(
            "servers: {{s: {{url: 'http://{}/mcp'}}}}, allow: {{retail: [say, bad, sad]}}",
            mock.addr()
        ),
        "",
    );
    super::up(&gateway);
    let session = open_session(&gateway);
    let headers: Headers<'_> = &[("mcp-session-id", &session)];
    for (name, code, kind) in [
        ("nothing", -32_602, json!("tool_not_found")),
        ("secret", -32_050, json!("tool_denied")),
        ("bad", -32_099, Value::Null),
    ] {
        let body = request("tools/call", json!({"name": name, "arguments": {}}));
        let reply = rpc(&gateway, "/mcp", headers, &body);
        let error = reply.json()["error"].clone();
        assert_eq!(
            (reply.status, &error["code"], &error["data"]["type"]),
            (200, &json!(code), &kind),
            "{name}: {error}"
        );
        assert!(error["message"].is_string());
    }
    let sad = request("tools/call", json!({"name": "sad"}));
    assert_eq!(rpc(&gateway, "/mcp", headers, &sad).json()["result"]["isError"], true);
    // Over REST an error of the server is one of the upstream.
    let reply = super::call(&gateway, "bad", &json!({}));
    assert_eq!((reply.status, super::kind(&reply).as_str()), (502, "upstream_error"));
    assert!(reply.text().contains("-32099"), "{}", reply.text());
    let down = get(gateway.addr(), "/health").json();
    assert_eq!(down["mcp_servers"], 1);
}

#[test]
fn a_client_that_takes_only_events_gets_one() {
    let gateway = with_tools("allow: {retail: [echo]}", "");
    let session = open_session(&gateway);
    let headers: Headers<'_> = &[("mcp-session-id", &session), ("accept", "text/event-stream")];
    let call = request("tools/call", json!({"name": "echo", "arguments": {"text": "a\nb"}}));
    let reply = rpc(&gateway, "/mcp", headers, &call);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let text = reply.text();
    let data =
        text.strip_prefix("event: message\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
    let message: Value = serde_json::from_str(data.unwrap()).unwrap();
    assert_eq!(message["result"]["content"][0]["text"], "a\nb");
}
