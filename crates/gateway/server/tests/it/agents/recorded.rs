//! Recorded clients of agents, sent to the gateway again as they came; and recorded agents behind
//! the gateway.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use plimsoll_mock::{Mock, MockConfig};
use serde_json::{Value, json};

use crate::support::client::{ask, get, post, raw};
use crate::support::gateway;
use crate::support::provider::Provider;
use crate::support::recorded::{Recorded, documents, recorded, recorded_answers};

const AGENTS: [&str; 4] = ["echo", "steps", "asking", "failing"];

/// The agent in the path.
fn agent(request: &Recorded) -> &'static str {
    let path = request.path().strip_prefix("/a2a/").unwrap();
    let named = path.split('/').next();
    AGENTS.into_iter().find(|agent| Some(*agent) == named).unwrap()
}

/// The task that a message goes on with, or asks for.
fn task(asked: &Value) -> Option<&str> {
    let known = ["GetTask", "CancelTask", "tasks/get", "tasks/cancel"];
    match asked["method"].as_str() {
        Some(method) if known.contains(&method) => asked["params"]["id"].as_str(),
        _ => asked["params"]["message"]["taskId"].as_str(),
    }
}

/// The task that an answer names.
fn task_in(document: &Value) -> Option<String> {
    let result = &document["result"];
    let named = [
        &result["task"]["id"],
        &result["statusUpdate"]["taskId"],
        &result["taskId"],
        &result["id"],
    ];
    named.into_iter().find_map(|id| id.as_str().map(str::to_owned))
}

#[test]
fn recorded_clients_are_answered_and_their_messages_reach_the_agent_once() {
    for name in ["a2a-python-1.0", "a2a-python-0.3", "a2a-typescript-1.0", "a2a-typescript-0.3"] {
        for layers in ["", "policy: {}\nscrub: {}\n"] {
            replay(name, layers);
        }
    }
}

fn replay(name: &str, layers: &str) {
    let config = MockConfig::from_yaml(
        "{log: memory, workers: 1, a2a: {agents: {echo: {echo: true},
            steps: {answer: task, latency: 10ms, pieces: 4},
            asking: {answer: task, input_required_share: 1}, failing: {rpc_error_share: 1}}}}",
    );
    let mut mock = Mock::spawn(&config.unwrap(), SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let known = AGENTS.map(|agent| {
        let address = mock.addr();
        format!(
            "{agent}: {{url: 'http://{address}/a2a/{agent}', card: /a2a/{agent}/.well-known/agent-card.json}}"
        )
    });
    let gateway = gateway(&format!(
        "{layers}agents: {{agents: {{known: {{{}}}, allow: {{'*': ['*']}}}}}}",
        known.join(", ")
    ));
    let mut tasks: BTreeMap<&str, String> = BTreeMap::new();
    let mut sent = Vec::new();
    for request in recorded(name) {
        let (asked, agent) = (request.json(), agent(&request));
        let current = tasks.get(agent).map(String::as_str);
        let reply = raw(gateway.addr(), &request.bytes("", task(&asked), current)).reply();
        assert_eq!((reply.status, reply.broken), (200, false), "{name}: {reply:?}");
        let answers = documents(&reply);
        let last = answers.last().unwrap();
        let Some(method) = asked["method"].as_str() else {
            assert!(last["name"] == agent && reply.text().contains("/a2a/"), "{name}: {reply:?}");
            continue;
        };
        assert_eq!(last["id"], asked["id"], "{name}: {reply:?}");
        if let Some(task) = answers.iter().find_map(task_in) {
            tasks.insert(agent, task);
        }
        sent.push((agent.to_owned(), method.to_owned(), last["error"]["code"].as_i64()));
    }
    drop(gateway);
    mock.shutdown();
    let mut log = mock.take_log();
    log.sort_by_key(|record| record.sequence);
    // The agent's own answers are those that the client got.
    let logged: Vec<_> = log
        .iter()
        .filter_map(|record| record.rpc.as_deref())
        .map(|rpc| (rpc.agent.clone().unwrap(), rpc.method.clone().unwrap(), rpc.code))
        .collect();
    assert_eq!(sent, logged, "{name}");
    assert!(sent.iter().any(|(_, _, code)| code.is_none()) && sent.len() > 8, "{name}: {sent:?}");
}

/// The methods of a version, in the order in which `scripts/sdk/record` asks behind the card.
fn methods(version: &str) -> [&'static str; 3] {
    match version {
        "1.0" => ["SendMessage", "SendStreamingMessage", "GetTask"],
        _ => ["message/send", "message/stream", "tasks/get"],
    }
}

/// The recorded response of an agent to a message, with another id.
fn answer_of(name: &str, place: usize, id: &Value) -> String {
    let recorded = recorded_answers(name);
    recorded[place].body.replace(&format!("\"id\":{}", place + 1), &format!("\"id\":{id}"))
}

/// An agent that answers as a recorded one did; the other version it does not know.
fn recorded_agent(name: &'static str, version: &'static str) -> Provider {
    Provider::start(move |seen, wire| {
        let asked: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        let known = methods(version).into_iter().position(|known| asked["method"] == known);
        let place = match known {
            Some(known) => known + 1,
            None if asked.is_null() => 0,
            None => {
                let error = json!({"code": -32_601, "message": "Method not found"});
                return wire
                    .json(200, &json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
            }
        };
        let recorded = recorded_answers(name);
        let kind = recorded[place].header("content-type").unwrap();
        wire.whole(recorded[place].status(), kind, &answer_of(name, place, &asked["id"]))
    })
}

#[test]
fn recorded_agents_work_behind_the_gateway() {
    for (name, version) in [
        ("a2a-python-1.0", "1.0"),
        ("a2a-python-0.3", "0.3"),
        ("a2a-typescript-1.0", "1.0"),
        ("a2a-typescript-0.3", "0.3"),
    ] {
        let agent = recorded_agent(name, version);
        for layers in ["", "policy: {}\nscrub: {}\n"] {
            let gateway = gateway(&format!(
                "{layers}agents: {{agents: {{known: {{loud: {{url: 'http://{}/rpc'}}}}, \
                 allow: {{'*': ['*']}}}}}}",
                agent.addr
            ));
            let card = get(gateway.addr(), "/.well-known/agent-card.json");
            assert_eq!((card.status, &card.json()["name"]), (200, &json!("loud")), "{name}");
            let header = ("a2a-version", version);
            for (method, place) in methods(version).into_iter().zip(1..) {
                let part = json!({"text": "hello"});
                let role = if version == "1.0" { "ROLE_USER" } else { "user" };
                let message = json!({"messageId": "m", "role": role, "parts": [part]});
                let params = json!({"message": message, "id": "t"});
                let body = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
                let reply =
                    ask(gateway.addr(), "POST /a2a", &[header], body.to_string().as_bytes());
                assert_eq!((reply.status, reply.broken), (200, false), "{name}: {reply:?}");
                assert_eq!(reply.text(), answer_of(name, place, &json!("x")), "{name} {method}");
            }
            let body = json!({"agent": "loud", "message": "hello"});
            let reply = post(gateway.addr(), "/v1/a2a/send", &[], &body);
            let artifact = &reply.json()["result"]["artifacts"][0];
            let parts = artifact["parts"].as_array().cloned().unwrap_or_default();
            let text: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            assert_eq!((reply.status, text.as_str()), (200, "HELLO"), "{name}: {reply:?}");
        }
    }
}
