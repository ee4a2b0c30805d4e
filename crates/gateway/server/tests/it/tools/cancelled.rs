//! Calls that their client cancels, or no longer waits for.

use std::cell::RefCell;

use plimsoll_gateway_server::Gateway;
use plimsoll_mock::{LogRecord, Mock, RequestEnd};
use serde_json::{Value, json};

use super::{RETAIL, mock, open_session, rpc, up, with_tools};
use crate::support::client::{PendingRequest, send};
use crate::support::{metric, until};

/// A server whose tool `slow` does not answer, and a gateway that waits for it.
fn slow(protocol: &str) -> (Mock, Gateway) {
    let mock = mock("tools: {slow: {latency: 10m}}");
    let gateway = with_tools(
        &format!(
            "refresh: 1h, allow: {{retail: ['s/*']}}, servers: \
             {{s: {{url: 'http://{}/mcp', protocol: {protocol}, timeout: 10m}}}}",
            mock.addr()
        ),
        "",
    );
    up(&gateway);
    (mock, gateway)
}

/// A call that has reached the server.
fn call_in_flight(mock: &Mock, gateway: &Gateway, session: &str) -> PendingRequest {
    let call = json!({"jsonrpc": "2.0", "id": "c 1", "method": "tools/call",
        "params": {"name": "slow", "arguments": {}}});
    let headers = [RETAIL, ("mcp-session-id", session)];
    let pending = send(gateway.addr(), "POST /mcp", &headers, call.to_string().as_bytes());
    until("the server has the call", || mock.stats().in_flight == 1);
    pending
}

/// The end of the call in the server's log, once it was told so many cancellations.
fn end_of_call(mock: &Mock, told: usize) -> RequestEnd {
    let log = RefCell::new(Vec::<LogRecord>::new());
    let of = |method: &str| -> Vec<RequestEnd> {
        let log = log.borrow();
        let messages = log.iter().filter_map(|record| Some((record, record.rpc.as_ref()?)));
        let found = messages.filter(|(_, rpc)| rpc.method.as_deref() == Some(method));
        found.filter_map(|(record, _)| record.end).collect()
    };
    until("the call ends, and the server is told", || {
        log.borrow_mut().extend(mock.take_log());
        of("tools/call").len() == 1 && of("notifications/cancelled").len() >= told
    });
    assert_eq!(of("notifications/cancelled").len(), told);
    of("tools/call")[0]
}

#[test]
fn a_call_that_its_client_cancels_ends_at_the_server() {
    for (protocol, told) in [("sessions", 1), ("stateless", 0)] {
        let (mock, gateway) = slow(protocol);
        let session = open_session(&gateway);
        let pending = call_in_flight(&mock, &gateway, &session);
        let cancel = |session: &str, id: Value| {
            let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": id, "reason": "enough"}});
            rpc(&gateway, "/mcp", &[("mcp-session-id", session)], &body).status
        };
        // Neither another request nor that of another session.
        let other = open_session(&gateway);
        assert_eq!((cancel(&session, json!(1)), cancel(&other, json!("c 1"))), (202, 202));
        assert_eq!(mock.stats().in_flight, 1);
        assert_eq!(cancel(&session, json!("c 1")), 202);
        let reply = pending.reply();
        let error = json!({"code": -32_800, "message": "Request cancelled"});
        let expected = json!({"jsonrpc": "2.0", "id": "c 1", "error": error});
        assert_eq!((reply.status, reply.json()), (200, expected));
        let end = end_of_call(&mock, told);
        // In a session the server may answer that it was cancelled before it sees the connection
        // end.
        assert!(end == RequestEnd::ClientGone || told == 1, "{protocol}: {end:?}");
        let cancelled = "gateway_tool_calls_total{server=\"s\",outcome=\"cancelled\"} ";
        assert_eq!(metric(&gateway, cancelled), Some(1.0));
        // Finished calls cannot be cancelled.
        assert_eq!(cancel(&session, json!("c 1")), 202);
    }
}

#[test]
fn a_server_with_sessions_is_told_when_nobody_waits_any_more() {
    let (mock, gateway) = slow("sessions");
    let session = open_session(&gateway);
    drop(call_in_flight(&mock, &gateway, &session));
    end_of_call(&mock, 1);
}
