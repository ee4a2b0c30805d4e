//! The layer of agents: sessions, approvals, agents behind the gateway, and the agent loop.

mod a2a;
mod approvals;
mod chat;
mod recorded;
mod rows;
mod runs;
mod sdk;
mod send;
mod sessions;

use std::net::SocketAddr;

use plimsoll_gateway_server::Gateway;
use serde_json::{Value, json};

use super::support::client::{ClientResponse, Headers, ask, post};
use super::support::gateway;
use super::support::provider::{Provider, ReceivedRequest, ResponseWriter};

/// Two tenants, each with its key.
pub(super) const TENANTS: &str = "auth: {header: apikey, keys: [{name: a, key: key-a, tenant: acme}, {name: boss, key: key-boss, tenant: acme}, \
                                  {name: b, key: key-b, tenant: beta}]}\ntenant: {}\n";
pub(super) const ACME: Headers<'static> = &[("apikey", "key-a")];
/// Another key of the same tenant.
pub(super) const BOSS: Headers<'static> = &[("apikey", "key-boss")];
pub(super) const BETA: Headers<'static> = &[("apikey", "key-b")];

/// A gateway with the layer and two tenants.
pub(super) fn tenants(agents: &str) -> Gateway {
    gateway(&format!("{TENANTS}agents: {agents}"))
}

pub(super) fn show(addr: SocketAddr, path: &str, headers: Headers<'_>) -> ClientResponse {
    ask(addr, &format!("GET {path}"), headers, b"")
}

/// Checks status and kind of an error.
pub(super) fn expect_error(reply: &ClientResponse, status: u16, kind: &str) {
    assert_eq!((reply.status, &reply.json()["error"]["type"]), (status, &json!(kind)), "{reply:?}");
}

/// A time in milliseconds since 1970, between two others.
pub(super) fn time(value: &Value) -> u64 {
    value.as_u64().filter(|time| *time > 1_700_000_000_000).unwrap_or_else(|| panic!("{value}"))
}

/// A whole A2A server by hand: its own reading of both versions. It answers a message with its text
/// in upper case, and `slow` in three pieces.
pub(super) fn agent_server(name: &'static str) -> Provider {
    Provider::start(move |seen, wire| match seen.path.as_str() {
        "/.well-known/agent-card.json" => wire.json(200, &card(name)),
        "/rpc" => rpc(seen, wire),
        _ => wire.json(404, &json!({"no": "route"})),
    })
}

fn card(name: &str) -> Value {
    json!({
        "name": name,
        "version": "1",
        "supportedInterfaces": [
            {"url": "http://internal:1/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "http://internal:2/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "skills": [],
    })
}

fn rpc(seen: &ReceivedRequest, wire: &mut ResponseWriter) -> std::io::Result<()> {
    let ask = seen.json();
    let current = seen.header("a2a-version") == Some("1.0");
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": ask["id"], "result": result});
    let text = ask["params"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    let loud = text.to_uppercase();
    match (ask["method"].as_str().unwrap(), current) {
        ("SendMessage", true) => {
            assert_eq!(ask["params"]["message"]["role"], "ROLE_USER");
            wire.json(200, &answer(json!({"task": task(&loud, "TASK_STATE_COMPLETED")})))
        }
        ("message/send", false) => {
            assert_eq!(ask["params"]["message"]["role"], "user");
            wire.json(200, &answer(task(&loud, "completed")))
        }
        ("SendStreamingMessage", true) | ("message/stream", false) => {
            wire.stream()?;
            for piece in ["one.\n", "two.\n", "three.\n"] {
                let event = answer(json!({"artifactUpdate": {"taskId": "t", "text": piece}}));
                wire.frame(&format!("data: {event}\n\n"))?;
                super::support::sleep_ms(60);
            }
            wire.end()
        }
        ("GetTask", true) | ("tasks/get", false) => {
            let error = json!({"code": -32_001, "message": "Task not found"});
            wire.json(200, &json!({"jsonrpc": "2.0", "id": ask["id"], "error": error}))
        }
        _ => {
            let error = json!({"code": -32_601, "message": "Method not found"});
            wire.json(200, &json!({"jsonrpc": "2.0", "id": ask["id"], "error": error}))
        }
    }
}

fn task(text: &str, state: &str) -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": {"state": state},
        "artifacts": [{"artifactId": "a-1", "parts": [{"text": text}]}]})
}

/// The section for agents at these servers, with what is allowed.
pub(super) fn agents_at(servers: &[(&str, SocketAddr)], rest: &str) -> String {
    let known = servers.iter().map(|(name, addr)| format!("{name}: {{url: 'http://{addr}/rpc'}}"));
    let known = known.collect::<Vec<_>>().join(", ");
    format!("{{agents: {{known: {{{known}}}, {rest}}}}}")
}

/// A request of JSON-RPC.
pub(super) fn call(
    gateway: &Gateway,
    path: &str,
    headers: Headers<'_>,
    body: &Value,
) -> ClientResponse {
    post(gateway.addr(), path, headers, body)
}
