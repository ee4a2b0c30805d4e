//! Sessions: their limit of calls, and that they are their tenant's.

use serde_json::json;

use super::{
    CALL, call_as, count, echo_mock, kind, messages, open_session, request, rpc, with_tools,
};
use crate::support::client::{Headers, ask, post};
use crate::support::{crowd, sleep_ms};

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
    // What is refused for another reason is no call, and other requests go on.
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
    let gateway = with_tools("allow: {retail: [echo], wholesale: [echo]}, session_timeout: 1s", "");
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
    let idle = open_session(&gateway);
    sleep_ms(1_300);
    assert_eq!(with("retail", &idle, "POST /mcp"), 404, "it expired");
}

#[test]
fn there_are_no_more_sessions_than_allowed() {
    let gateway = with_tools("sessions: 3, allow: {retail: [echo]}", "");
    let sessions: Vec<String> = (0..3).map(|_| open_session(&gateway)).collect();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
    let open = || rpc(&gateway, "/mcp", &[], &request("initialize", params.clone())).status;
    assert_eq!(open(), 503);
    let headers = [super::RETAIL, ("mcp-session-id", &sessions[0])];
    assert_eq!(ask(gateway.addr(), "DELETE /mcp", &headers, b"").status, 204);
    assert_eq!(open(), 200);
}
