//! Requests of the official SDKs' clients, as `scripts/sdk/record` recorded them: sent again as
//! they came, they are answered, and the log has each.

use std::collections::BTreeMap;

use plimsoll_mock::{RpcOutcome, RpcRecord};
use serde_json::Value;

use crate::support::{Client, Response, finish, spawn};

/// A request as it came.
struct Recorded {
    head: String,
    body: String,
}

/// The recorded requests of a client.
fn recorded(name: &str) -> Vec<Recorded> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../proof/test-support/recorded/clients");
    let text = std::fs::read_to_string(format!("{folder}/{name}.http")).unwrap();
    let (mut rest, mut all) = (&text[..], Vec::new());
    while let Some((head, behind)) = rest.split_once("\r\n\r\n") {
        let length = header(head, "content-length").map_or(0, |length| length.parse().unwrap());
        let (body, next) = behind.split_at(length);
        all.push(Recorded { head: head.to_owned(), body: body.to_owned() });
        rest = next;
    }
    assert!(rest.is_empty() && !all.is_empty(), "{name}");
    all
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    headers
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

impl Recorded {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The agent in the path.
    fn agent(&self) -> &str {
        let path = self.head.split(' ').nth(1).unwrap();
        path.strip_prefix("/a2a/").and_then(|path| path.split('/').next()).unwrap_or_default()
    }

    /// The task that the message goes on with, or asks for.
    fn task(&self) -> Option<String> {
        let asked = self.json();
        let known = ["GetTask", "CancelTask", "tasks/get", "tasks/cancel"];
        let named = match asked["method"].as_str() {
            Some(method) if known.contains(&method) => &asked["params"]["id"],
            _ => &asked["params"]["message"]["taskId"],
        };
        named.as_str().map(str::to_owned)
    }

    /// The bytes, with another text in place of one that the mock had made then.
    fn with(&self, old: Option<&str>, new: Option<&str>) -> String {
        let all = format!("{}\r\n\r\n{}", self.head, self.body);
        let (Some(old), Some(new)) = (old, new) else { return all };
        assert_eq!(old.len(), new.len(), "the length of the body stays");
        all.replace(old, new)
    }
}

const TOOLS: &str = "{log: memory, mcp: {tools: {slow: {latency: 20ms, progress: 4},
    failing: {tool_error_share: 1},
    echo: {echo: true, input: {type: object, properties: {text: {type: string}}, required: [text]}}}}}";

/// The mock's response to a tool call or another message.
fn expected_of_tools(rpc: &RpcRecord) -> (RpcOutcome, Option<i64>) {
    match (rpc.method.as_deref(), rpc.name.as_deref()) {
        (Some(method), _) if method.starts_with("notifications/") => (RpcOutcome::Accepted, None),
        (_, Some("failing")) => (RpcOutcome::ToolError, None),
        (_, Some("no such tool")) => (RpcOutcome::Error, Some(-32_602)),
        (Some(_), _) => (RpcOutcome::Result, None),
        (None, _) => (RpcOutcome::SessionEnded, None),
    }
}

#[test]
fn recorded_clients_of_tool_servers_are_answered() {
    for (name, version) in [
        ("mcp-python-2025-11-25", "2025-11-25"),
        ("mcp-python-2026-07-28", "2026-07-28"),
        ("mcp-typescript-2025-11-25", "2025-11-25"),
        ("mcp-typescript-2026-07-28", "2026-07-28"),
        ("mcp-typescript1-2025-11-25", "2025-11-25"),
    ] {
        look_at_tool_calls(name, version);
    }
}

/// Sends what a client of this version sent, and looks at the log.
fn look_at_tool_calls(name: &str, version: &str) {
    let requests = recorded(name);
    let mock = spawn(TOOLS);
    let mut client = Client::connect(&mock);
    let mut session = None;
    for request in &requests {
        let known = header(&request.head, "mcp-session-id");
        client.send(&request.with(known, session.as_deref()));
        let response = client.response();
        assert!(response.complete, "{name}: {response:?} to {}", request.head);
        let opened = response.header("mcp-session-id").map(str::to_owned);
        session = opened.or(session);
    }
    let log = finish(mock);
    assert_eq!(log.len(), requests.len(), "{name}");
    let mut methods = Vec::new();
    for (record, request) in log.iter().zip(&requests) {
        let rpc = record.rpc.as_deref().unwrap();
        if request.head.starts_with("GET ") {
            // The mock has no stream to listen on, and says so.
            assert_eq!((rpc.outcome, rpc.code), (RpcOutcome::Error, Some(-32_600)), "{name}");
            continue;
        }
        assert_eq!((rpc.outcome, rpc.code), expected_of_tools(rpc), "{name}: {rpc:?}");
        assert_eq!(rpc.version.as_deref(), Some(version), "{name}: {rpc:?}");
        methods.extend(rpc.method.clone());
    }
    let first = if version < "2026" { "initialize" } else { "server/discover" };
    for method in [first, "tools/list", "tools/call", "resources/read", "prompts/get"] {
        assert!(methods.iter().any(|known| known == method), "{name}: {method} in {methods:?}");
    }
}

/// The task that an answer names.
fn task_in(response: &Response) -> Option<String> {
    let documents = response.text().lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    documents.filter_map(|text| serde_json::from_str::<Value>(text).ok()).find_map(|document| {
        let result = &document["result"];
        let named = [
            &result["task"]["id"],
            &result["statusUpdate"]["taskId"],
            &result["taskId"],
            &result["id"],
        ];
        named.into_iter().find_map(|id| id.as_str().map(str::to_owned))
    })
}

/// The mock's response to a message to an agent.
fn expected_of_agents(rpc: &RpcRecord) -> (RpcOutcome, Option<i64>) {
    let method = rpc.method.as_deref().unwrap();
    let code = match rpc.agent.as_deref() {
        _ if method.to_lowercase().contains("pushnotificationconfig") => Some(-32_003),
        // The mock keeps no lists of tasks.
        _ if method == "ListTasks" => Some(-32_601),
        // Its task has ended.
        Some("steps") if method.to_lowercase().contains("cancel") => Some(-32_002),
        Some("failing") => Some(-32_603),
        _ => None,
    };
    (if code.is_some() { RpcOutcome::Error } else { RpcOutcome::Result }, code)
}

#[test]
fn recorded_clients_of_agents_are_answered() {
    for (sdk, version) in
        [("python", "1.0"), ("python", "0.3"), ("typescript", "1.0"), ("typescript", "0.3")]
    {
        let name = format!("a2a-{sdk}-{version}");
        let requests = recorded(&name);
        let mock = spawn(
            "{log: memory, workers: 1, a2a: {agents: {echo: {echo: true},
                steps: {answer: task, latency: 10ms, pieces: 4}, long: {answer: task, latency: 60s},
                asking: {answer: task, input_required_share: 1}, failing: {rpc_error_share: 1}}}}",
        );
        let mut client = Client::connect(&mock);
        let mut tasks: BTreeMap<&str, String> = BTreeMap::new();
        for request in &requests {
            let current = tasks.get(request.agent()).map(String::as_str);
            client.send(&request.with(request.task().as_deref(), current));
            let response = client.response();
            assert!(response.complete && response.status == 200, "{name}: {response:?}");
            if let Some(task) = task_in(&response) {
                tasks.insert(request.agent(), task);
            }
        }
        let log = finish(mock);
        assert_eq!(log.len(), requests.len(), "{name}");
        let all: Vec<_> = log.iter().filter_map(|record| record.rpc.as_deref()).collect();
        for rpc in &all {
            assert_eq!((rpc.outcome, rpc.code), expected_of_agents(rpc), "{name}: {rpc:?}");
            assert_eq!(rpc.version.as_deref(), Some(version), "{name}: {rpc:?}");
        }
        let of = |agent: &str, state: &str| {
            all.iter().any(|rpc| {
                (rpc.agent.as_deref(), rpc.state.as_deref()) == (Some(agent), Some(state))
            })
        };
        assert!(of("asking", "input-required") && of("asking", "completed"), "{name}: {all:?}");
        assert!(of("steps", "completed") && all.iter().any(|rpc| rpc.streamed), "{name}: {all:?}");
    }
}
