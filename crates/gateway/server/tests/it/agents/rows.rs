//! The audit rows of the layer.

use serde_json::{Value, json};

use super::{ACME, TENANTS, agent_server, agents_at, call, show};
use crate::support::client::{ask, post};
use crate::support::gateway;

#[test]
fn every_request_has_its_row_with_tenant_trace_and_agent() {
    let server = agent_server("planner");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.jsonl");
    let section = agents_at(&[("planner", server.addr)], "allow: {acme: ['*']}");
    let mut gateway = gateway(&format!(
        "{TENANTS}request_id: {{}}\naudit: {{path: '{}'}}\nagents: {section}",
        file.display()
    ));
    let addr = gateway.addr();
    let traced = |id: &'static str| [ACME[0], ("x-request-id", id)];
    let made = post(addr, "/v1/sessions", &traced("t-1"), &json!({})).json();
    let path = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap());
    let body = json!({"agent": "planner", "message": "hi", "session_id": made["session_id"]});
    assert_eq!(post(addr, "/v1/a2a/send", &traced("t-2"), &body).status, 200);
    assert_eq!(server.seen().pop().unwrap().header("x-request-id"), Some("t-2"));
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {}});
    assert_eq!(call(&gateway, "/a2a", &traced("t-3"), &rpc).status, 200);
    assert_eq!(server.seen().pop().unwrap().header("x-request-id"), Some("t-3"));
    assert_eq!(post(addr, "/v1/hitl", &traced("t-4"), &json!({"action": "x"})).status, 201);
    assert_eq!(ask(addr, &format!("DELETE {path}"), &traced("t-5"), b"").status, 204);
    assert_eq!(show(addr, &path, &traced("t-6")).status, 404);
    gateway.shutdown();
    let text = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let row = |id: &str| rows.iter().find(|row| row["request_id"] == id).unwrap();
    assert_eq!(rows.len(), 6);
    for (id, route, status) in [
        ("t-1", "/v1/sessions", 201),
        ("t-2", "/v1/a2a/send", 200),
        ("t-3", "/a2a", 200),
        ("t-4", "/v1/hitl", 201),
        ("t-5", "/v1/sessions/{id}", 204),
        ("t-6", "/v1/sessions/{id}", 404),
    ] {
        let row = row(id);
        assert_eq!((&row["route"], &row["status"]), (&json!(route), &json!(status)), "{row}");
        assert_eq!(row["tenant"], "acme");
    }
    for id in ["t-2", "t-3"] {
        assert_eq!(row(id)["model"], "planner");
        assert!(row(id)["upstream_us"].as_u64().unwrap() > 0, "{}", row(id));
        assert!(row(id)["request_bytes"].as_u64().unwrap() > 40);
    }
    assert!(row("t-3")["upstream_us"].as_u64().unwrap() >= 120_000, "to the end of the stream");
}
