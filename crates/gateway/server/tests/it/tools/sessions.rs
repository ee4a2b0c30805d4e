//! Sessions: their limit of calls, and that they are their tenant's.

use std::fs;

use plimsoll_gateway_server::{Gateway, Spec};
use serde_json::{Value, json};

use super::{
    CALL, call_as, count, echo_mock, kind, messages, open_session, request, rpc, with_tools,
};
use crate::support::client::{ClientResponse, Headers, ask, post};
use crate::support::{crowd, gateway, sleep_ms};

/// The request that opens a session.
fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
    request("initialize", params)
}

#[test]
fn a_session_has_twenty_calls_over_mcp_and_rest_together() {
    let mock = echo_mock("say");
    let gateway = super::behind(mock.addr(), "", "");
    let session = open_session(&gateway);
    let headers: Headers<'_> = &[("mcp-session-id", &session)];
    let say = request("tools/call", json!({"name": "say", "arguments": {"text": "hi"}}));
    for number in 0..10 {
        let reply = rpc(&gateway, "/mcp", headers, &say).json();
        assert_eq!(reply["result"]["content"][0]["text"], "hi", "{number}");
    }
    let body = json!({"name": "say", "arguments": {"text": "hi"}, "session_id": session});
    for left in (0..10).rev() {
        let reply = call_as(&gateway, "retail", &body).json();
        assert_eq!((&reply["calls_left"], &reply["session_id"]), (&json!(left), &json!(session)));
    }
    for _ in 0..3 {
        let reply = call_as(&gateway, "retail", &body);
        assert_eq!((reply.status, kind(&reply).as_str()), (429, "tool_call_limit"));
        let reply = rpc(&gateway, "/mcp", headers, &say).json();
        assert_eq!(reply["error"]["data"]["type"], "tool_call_limit", "{reply}");
    }
    // Calls rejected for another reason do not count, and other requests continue.
    let unknown = json!({"name": "nothing", "session_id": session});
    assert_eq!(call_as(&gateway, "retail", &unknown).status, 404);
    assert_eq!(rpc(&gateway, "/mcp", headers, &request("ping", json!({}))).status, 200);
    drop(gateway);
    assert_eq!(count(&messages(mock), "tools/call"), 20);
}

#[test]
fn racers_get_exactly_the_calls_that_a_session_has() {
    let gateway = with_tools("allow: {retail: [echo]}", "workers: 2");
    let session = open_session(&gateway);
    let body = json!({"name": "echo", "arguments": {"text": "x"}, "session_id": session});
    let replies = crowd(|_| call_as(&gateway, "retail", &body));
    let good = replies.iter().filter(|reply| reply.status == 200).count();
    let refused = replies.iter().filter(|reply| reply.status == 429).count();
    assert_eq!((good, refused), (20, 44));
}

#[test]
fn a_session_is_its_tenants_and_ends() {
    let gateway = with_tools("allow: {retail: [echo], wholesale: [echo]}, session_timeout: 3s", "");
    let session = open_session(&gateway);
    let body = json!({"name": "echo", "arguments": {"text": "x"}, "session_id": session});
    assert_eq!(call_as(&gateway, "retail", &body).status, 200);
    let other = call_as(&gateway, "wholesale", &body);
    assert_eq!((other.status, kind(&other).as_str()), (404, "session_not_found"));
    let nobody = post(gateway.addr(), CALL, &[], &body);
    assert_eq!(nobody.status, 403, "who is nobody may call nothing");
    let ping = request("ping", json!({})).to_string();
    let with = |tenant, session: &str, line: &str| {
        let headers = [("x-tenant-id", tenant), ("mcp-session-id", session)];
        ask(
            gateway.addr(),
            line,
            &headers,
            if line.starts_with("POST") { ping.as_bytes() } else { b"" },
        )
        .status
    };
    assert_eq!(with("retail", &session, "POST /mcp"), 200);
    assert_eq!(with("wholesale", &session, "POST /mcp"), 404);
    assert_eq!(with("wholesale", &session, "DELETE /mcp"), 404, "nor may another end it");
    assert_eq!(
        with("retail", &session.to_uppercase(), "POST /mcp"),
        if session == session.to_uppercase() { 200 } else { 404 }
    );
    assert_eq!(with("retail", &session, "DELETE /mcp"), 204);
    assert_eq!(with("retail", &session, "DELETE /mcp"), 404);
    assert_eq!(with("retail", &session, "POST /mcp"), 404);
    assert_eq!(call_as(&gateway, "retail", &body).status, 404);
    let short = open_session(&gateway);
    sleep_ms(3_300);
    assert_eq!(with("retail", &short, "POST /mcp"), 404, "it expired");
}

#[test]
fn there_are_no_more_sessions_than_allowed() {
    let gateway = with_tools("sessions: 3, allow: {retail: [echo]}", "");
    let sessions: Vec<String> = (0..3).map(|_| open_session(&gateway)).collect();
    let open = || rpc(&gateway, "/mcp", &[], &initialize()).status;
    assert_eq!(open(), 503);
    let headers = [super::RETAIL, ("mcp-session-id", &sessions[0])];
    assert_eq!(ask(gateway.addr(), "DELETE /mcp", &headers, b"").status, 204);
    assert_eq!(open(), 200);
}

#[test]
fn a_session_of_a_key_without_a_tenant_is_that_keys_alone() {
    let gateway = gateway(
        "auth: {header: apikey, keys: [{name: a, key: key-a}, {name: b, key: key-b}]}\n\
         tools: {allow: {'*': [echo]}}",
    );
    let send = |key, session: &str, line: &str, body: &Value| -> ClientResponse {
        let headers = [("apikey", key), ("mcp-session-id", session)];
        let body = body.to_string();
        ask(gateway.addr(), line, &headers[..=usize::from(!session.is_empty())], body.as_bytes())
    };
    let opened = send("key-a", "", "POST /mcp", &initialize());
    let session = opened.header("mcp-session-id").unwrap();
    let body = json!({"name": "echo", "arguments": {"text": "x"}, "session_id": session});
    let ping = request("ping", json!({}));
    let rest = format!("POST {CALL}");
    let stolen = send("key-b", "", &rest, &body);
    assert_eq!((stolen.status, kind(&stolen).as_str()), (404, "session_not_found"));
    assert_eq!(send("key-b", session, "POST /mcp", &ping).status, 404);
    assert_eq!(send("key-b", session, "DELETE /mcp", &json!({})).status, 404);
    assert_eq!(send("key-a", session, "POST /mcp", &ping).status, 200);
    assert_eq!(send("key-a", "", &rest, &body).json()["calls_left"], 19);
    assert_eq!(send("key-a", session, "DELETE /mcp", &json!({})).status, 204);
}

#[test]
fn a_reload_changes_the_bounds_of_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.yaml");
    let write = |tools: &str| {
        let text = format!("listen: 127.0.0.1:0\nmetrics: {{}}\ntenant: {{}}\n{tools}");
        fs::write(&file, text).unwrap();
    };
    write("");
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    let open = || rpc(&gateway, "/mcp", &[], &initialize()).status;
    assert_eq!(open(), 404, "there are no tools");
    let bounds = |sessions: u32, calls: u32| {
        write(&format!(
            "tools: {{allow: {{retail: [echo]}}, sessions: {sessions}, calls_per_session: {calls}}}"
        ));
        gateway.reload().unwrap();
    };
    bounds(1, 1);
    let session = open_session(&gateway);
    let body = json!({"name": "echo", "arguments": {"text": "x"}, "session_id": session});
    let call = || call_as(&gateway, "retail", &body).status;
    assert_eq!((call(), call(), open()), (200, 429, 503));
    bounds(2, 3);
    assert_eq!((open(), open()), (200, 503), "there is room for one more");
    assert_eq!((call(), call(), call()), (200, 200, 429), "two more calls");
    bounds(2, 2);
    assert_eq!(call(), 429);
}

#[test]
fn a_tenant_leaves_sessions_to_others() {
    let gateway = gateway(
        "auth: {header: apikey, keys: [{name: a, key: ka, tenant: ta}, {name: b, key: kb, tenant: tb}]}\n\
         tenant: {}\ntools: {allow: {ta: [echo], tb: [echo]}, sessions: 16}",
    );
    let open = |key| {
        let body = initialize().to_string();
        ask(gateway.addr(), "POST /mcp", &[("apikey", key)], body.as_bytes()).status
    };
    let opened: Vec<u16> = (0..20).map(|_| open("ka")).collect();
    assert_eq!(opened.iter().filter(|status| **status == 200).count(), 14, "{opened:?}");
    assert_eq!([open("kb"), open("kb"), open("kb")], [200, 200, 503]);
}
