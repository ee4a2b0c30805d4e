//! Tools together with the layer of agents: its sessions, its agent, its policies.

use serde_json::{Value, json};

use super::{call_as, count, echo_mock, kind, messages, up, with_tools};
use crate::support::client::{ask, post};
use crate::support::crowd;
use crate::support::provider::Provider;

const AGENTS: &str = "workers: 2\nagents: {agents: {known: {planner: {url: 'http://127.0.0.1:1/a2a'}}, \
                      allow: {retail: [planner]}}}";

#[test]
fn a_session_of_the_store_has_its_calls_and_no_more() {
    let gateway = with_tools("allow: {retail: [echo], wholesale: [echo]}", AGENTS);
    let made = post(gateway.addr(), "/v1/sessions", &[super::RETAIL], &json!({})).json();
    let session = made["session_id"].as_str().unwrap().to_owned();
    let body = json!({"name": "echo", "arguments": {"text": "x"}, "session_id": session});
    let first = call_as(&gateway, "retail", &body).json();
    assert_eq!(first["calls_left"], 19, "{first}");
    let replies = crowd(|_| call_as(&gateway, "retail", &body));
    let good = replies.iter().filter(|reply| reply.status == 200).count();
    let refused = replies.iter().filter(|reply| kind(reply) == "tool_call_limit").count();
    assert_eq!((good, refused), (19, 45));
    assert_eq!(kind(&call_as(&gateway, "wholesale", &body)), "session_not_found");
    let path = format!("/v1/sessions/{session}");
    let one =
        |method: &str| ask(gateway.addr(), &format!("{method} {path}"), &[super::RETAIL], b"");
    assert_eq!(one("GET").json()["tool_calls"], 20);
    assert_eq!(one("DELETE").status, 204);
    assert_eq!(kind(&call_as(&gateway, "retail", &body)), "session_not_found");
}

#[test]
fn policies_name_tools_and_agents() {
    let gateway = with_tools("allow: {retail: [echo]}", AGENTS);
    let shown = ask(gateway.addr(), "GET /v1/policies/retail", &[super::RETAIL], b"").json();
    let expected = json!({"tenant": "retail", "tools": ["echo"], "agents": ["planner"],
        "max_tool_calls": 20, "max_agent_depth": 5});
    assert_eq!(shown, expected);
}

/// A model that calls `say` once, and then repeats what it got.
fn model() -> Provider {
    Provider::start(|seen, wire| {
        let asked = seen.json();
        let last = asked["messages"].as_array().unwrap().last().unwrap().clone();
        let message = if last["role"] == "tool" {
            json!({"role": "assistant", "content": format!("it said {}", last["content"])})
        } else {
            let function = json!({"name": "say", "arguments": "{\"text\":\"hi\"}"});
            json!({"role": "assistant", "content": null,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}]})
        };
        wire.json(
            200,
            &json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}}),
        )
    })
}

#[test]
fn the_agent_of_the_gateway_calls_tools_of_servers() {
    let (mock, model) = (echo_mock("say"), model());
    let gateway = with_tools(
        &format!(
            "servers: {{s: {{url: 'http://{}/mcp'}}}}, allow: {{retail: ['s/*']}}",
            mock.addr()
        ),
        &format!(
            "upstreams: {{p: {{addresses: ['{}']}}}}\nagents: {{chat: {{upstream: p, model: m}}}}",
            model.addr
        ),
    );
    up(&gateway);
    let chat = |tenant: &str| {
        post(gateway.addr(), "/api/chat", &[("x-tenant-id", tenant)], &json!({"message": "go"}))
            .json()
    };
    let reply = chat("retail");
    assert_eq!((&reply["response"], &reply["tool_calls"]), (&json!("it said \"hi\""), &json!(1)));
    let offered: Vec<Value> = model.seen()[0].json()["tools"].as_array().unwrap().clone();
    assert_eq!(offered.len(), 1);
    assert_eq!(offered[0]["function"]["name"], "say");
    // Another tenant's model is offered nothing, and what it calls nevertheless is denied.
    let other = chat("wholesale");
    assert!(other["response"].as_str().unwrap().contains("tool_denied"), "{other}");
    drop(gateway);
    assert_eq!(count(&messages(mock), "tools/call"), 1);
}
