//! Tools: local ones and those of servers, over REST and MCP.
//!
//! Truth is the log of the mock, which is an MCP server that shares no code with the gateway, or
//! what a scripted server received.

mod audit;
mod broken_servers;
mod cancelled;
mod judged;
mod mcp;
mod recorded;
mod refusals;
mod rest;
mod sdk;
mod servers;
mod sessions;
mod with_agents;

use std::net::SocketAddr;

use plimsoll_gateway_server::Gateway;
use plimsoll_mock::{LogRecord, Mock, MockConfig, RpcRecord};
use serde_json::{Value, json};

use super::support::client::{ClientResponse, Headers, ask, get, post};
use super::support::{gateway, sleep_ms};

pub(super) const CALL: &str = "/v1/mcp/tools/call";
pub(super) const RETAIL: (&str, &str) = ("x-tenant-id", "retail");

/// A mock whose tools answer at once.
pub(super) fn mock(settings: &str) -> Mock {
    let yaml = format!("{{log: memory, mcp: {{{settings}}}}}");
    let config = MockConfig::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    Mock::spawn(&config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// A mock with a tool that gives its text back, under this name.
pub(super) fn echo_mock(tool: &str) -> Mock {
    mock(&format!("tools: {{{tool}: {{echo: true}}}}"))
}

/// The log of a mock that is shut down: its messages of MCP, in order.
pub(super) fn messages(mut mock: Mock) -> Vec<(LogRecord, RpcRecord)> {
    mock.shutdown();
    let mut log = mock.take_log();
    log.sort_by_key(|record| record.sequence);
    log.into_iter()
        .filter_map(|record| {
            let rpc = record.rpc.as_deref().cloned()?;
            Some((record, rpc))
        })
        .collect()
}

/// How many messages of this method a log has.
pub(super) fn count(log: &[(LogRecord, RpcRecord)], method: &str) -> usize {
    log.iter().filter(|(_, rpc)| rpc.method.as_deref() == Some(method)).count()
}

/// A gateway with tenants, these settings of the tools, and these sections.
pub(super) fn with_tools(tools: &str, sections: &str) -> Gateway {
    gateway(&format!("tenant: {{}}\ntools: {{{tools}}}\n{sections}"))
}

/// A gateway whose tenant `retail` may call all tools of the server `s`, which is up.
pub(super) fn behind(server: SocketAddr, settings: &str, sections: &str) -> Gateway {
    let gateway = with_tools(
        &format!(
            "servers: {{s: {{url: 'http://{server}/mcp', {settings}}}}}, \
             allow: {{retail: ['s/*', 'local/*']}}"
        ),
        sections,
    );
    up(&gateway);
    gateway
}

/// Waits until all servers are up, at most ten seconds.
pub(super) fn up(gateway: &Gateway) {
    let mut shown = Value::Null;
    for _ in 0..500 {
        shown = get(gateway.addr(), "/v1/mcp/servers").json();
        if shown["servers"].as_array().unwrap().iter().all(|server| server["state"] == "up") {
            return;
        }
        sleep_ms(20);
    }
    panic!("they are never up: {shown}");
}

/// A call by a tenant.
pub(super) fn call_as(gateway: &Gateway, tenant: &str, body: &Value) -> ClientResponse {
    post(gateway.addr(), CALL, &[("x-tenant-id", tenant)], body)
}

/// A call by the tenant `retail`.
pub(super) fn call(gateway: &Gateway, name: &str, arguments: &Value) -> ClientResponse {
    call_as(gateway, "retail", &json!({"name": name, "arguments": arguments}))
}

/// The text of a result.
pub(super) fn text(reply: &ClientResponse) -> String {
    let json = reply.json();
    let text = json["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{reply:?}")).to_owned()
}

/// The type of an error.
pub(super) fn kind(reply: &ClientResponse) -> String {
    reply.json()["error"]["type"].as_str().unwrap_or_default().to_owned()
}

/// A message to an MCP route.
pub(super) fn rpc(
    gateway: &Gateway,
    path: &str,
    headers: Headers<'_>,
    body: &Value,
) -> ClientResponse {
    let all: Vec<_> = [RETAIL].into_iter().chain(headers.iter().copied()).collect();
    ask(gateway.addr(), &format!("POST {path}"), &all, body.to_string().as_bytes())
}

/// A request of JSON-RPC.
pub(super) fn request(method: &str, params: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method});
    message["params"] = params;
    message
}

/// Opens a session, and returns its id.
pub(super) fn open_session(gateway: &Gateway) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
    let reply = rpc(gateway, "/mcp", &[], &request("initialize", params));
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.header("mcp-session-id").unwrap().to_owned()
}
