//! Agents: what follows from each answer, until the model calls no tool.

use plimsoll_measure::{ErrorClass, Nanos, Operation, Outcome, TaskCounts, TaskEnd, TaskPart};
use plimsoll_protocol::{
    Dialect, Encoder, EncoderOptions, HttpContent, PlainAnswer, RequestContent, ToolCall, rpc,
};
use plimsoll_workload::{
    AgentRole, AgentSpec, ApproveSpec, Conversation, DurationSpec, RpcEnd, ScenarioSpec,
    ToolProtocol, with_parts,
};
use serde_json::{Value, json};

use crate::support::{scenario, workload};

fn agent(agent: AgentSpec) -> Vec<ScenarioSpec> {
    with_parts(vec![ScenarioSpec { agent: Some(AgentRole::Agent(agent)), ..scenario() }], None)
}

/// The first conversations of an agent.
fn tasks(spec: AgentSpec, count: u64) -> Vec<Conversation> {
    let workload = workload(&agent(spec));
    let key = plimsoll_measure::ConversationKey::arrival;
    (0..count).map(|seq| workload.conversation(key(seq), None)).collect()
}

fn task(spec: AgentSpec) -> Conversation {
    tasks(spec, 1).remove(0)
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn result(text: &str, is_error: bool) -> PlainAnswer {
    PlainAnswer::Tool { text: text.to_owned(), is_error }
}

fn approval(id: &str, state: &str) -> PlainAnswer {
    PlainAnswer::Approval { id: id.to_owned(), state: state.to_owned() }
}

/// The request of the current turn, which is not one to the model.
fn plain(task: &Conversation) -> HttpContent {
    let RequestContent::Http(request) = task.turn().unwrap().content else {
        panic!("this is a request to the model");
    };
    request.clone()
}

fn body(task: &Conversation) -> Value {
    serde_json::from_slice(&plain(task).body).unwrap()
}

/// The messages of the current turn, which is one to the model.
fn messages(task: &Conversation, dialect: Dialect) -> Value {
    let mut out = Vec::new();
    let encoder = Encoder::new(dialect, &EncoderOptions::default()).unwrap();
    encoder.encode_body(&task.turn().unwrap(), &mut out).unwrap();
    serde_json::from_slice::<Value>(&out).unwrap()["messages"].clone()
}

#[test]
fn each_call_is_a_request_and_all_results_go_back_to_the_model() {
    let mut task = task(AgentSpec::default());
    assert_eq!((task.turns(), task.task_part()), (None, Some(TaskPart::Chat)));
    assert_eq!(task.scenario_of_turn(), task.scenario());
    let calls = vec![call("c1", "a", r#"{"x":1}"#), call("", "b \"q\"", "{\"cut")];
    task.advance_with("I look.", calls);
    let request = plain(&task);
    assert_eq!((&*request.method, &*request.path), ("POST", "/v1/mcp/tools/call"));
    let kind = ("content-type".to_owned(), "application/json".to_owned());
    assert!(request.headers.contains(&kind), "{:?}", request.headers);
    assert_eq!(body(&task), json!({"name": "a", "arguments": {"x": 1}}));
    assert_eq!((task.task_part(), task.scenario_of_turn().0), (Some(TaskPart::Tools), 1));
    task.advance_by(result("one", false));
    // Arguments that are no object are sent as the dialogue has them.
    assert_eq!(body(&task), json!({"name": "b \"q\"", "arguments": {}}));
    task.advance_by(result("two", true));
    assert_eq!(task.task_part(), Some(TaskPart::Chat));
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let chat = messages(&task, Dialect::OpenaiChat);
    let second = chat[1]["tool_calls"][1]["id"].as_str().unwrap().to_owned();
    let expected = json!([
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "c1", "type": "function", "function": function("a", "{\"x\":1}")},
            {"id": second, "type": "function", "function": function("b \"q\"", "{}")},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": second, "content": "two"},
    ]);
    assert_eq!(chat, expected);
    let anthropic = messages(&task, Dialect::AnthropicMessages);
    let of_user = json!([
        {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
        {"type": "tool_result", "tool_use_id": second, "content": "two"},
    ]);
    assert_eq!(anthropic[2], json!({"role": "user", "content": of_user}));
    task.advance_with("That is all.", Vec::new());
    assert!(task.is_over() && task.turn().is_none());
    let counts = TaskCounts { steps: 2, tool_calls: 2, tool_errors: 1, ..TaskCounts::default() };
    assert_eq!((task.task_end(), task.task_counts()), (Some(TaskEnd::Done), counts));
    assert_eq!(task.index(), 4, "every request has a number of its own");
}

#[test]
fn mcp_calls_describe_themselves_and_are_numbered_by_their_turn() {
    let mut task = task(AgentSpec { tools: ToolProtocol::Mcp, ..AgentSpec::default() });
    assert_eq!(task.expectation(), None, "a request to the model");
    task.advance_with("", vec![call("c", "é", "{}")]);
    let RequestContent::Rpc(request) = task.turn().unwrap().content else {
        panic!("this is no message to a tool server");
    };
    assert_eq!(&*request.path, "/mcp");
    let expected = rpc::Expectation { operation: Operation::CallTool, id: task.index().into() };
    assert_eq!(task.expectation(), Some(expected));
    let headers = request.headers();
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    assert_eq!(header("mcp-protocol-version"), "2026-07-28");
    assert_eq!((header("mcp-method"), header("mcp-name")), ("tools/call", "=?base64?w6k=?="));
    assert_eq!(header("accept"), "application/json, text/event-stream");
    let mut body = Vec::new();
    request.write_body(&mut body);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["id"], json!(task.index()));
    assert_eq!((&body["jsonrpc"], &body["method"]), (&json!("2.0"), &json!("tools/call")));
    assert_eq!(body["params"]["name"], "é");
    let meta = body["params"]["_meta"].as_object().unwrap();
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    // The task goes on after a success, and after nothing else.
    let end = |outcome| RpcEnd {
        outcome,
        status: 200,
        session: None,
        code: None,
        answer: rpc::Answer::default(),
    };
    assert!(task.note_answer(end(Outcome::Completed)));
    assert!(!task.note_answer(end(Outcome::Failed(ErrorClass::RpcError))));
}

/// Their description in a plan.
#[test]
fn the_calls_of_an_agent_are_a_scenario_of_their_protocol() {
    for (tools, protocol) in
        [(ToolProtocol::Rest, Dialect::Http), (ToolProtocol::Mcp, Dialect::Mcp)]
    {
        let scenarios = agent(AgentSpec { tools, ..AgentSpec::default() });
        assert_eq!((scenarios.len(), scenarios[1].protocol), (2, protocol));
        let path = match (&scenarios[1].http, &scenarios[1].mcp) {
            (Some(http), None) => &http.path,
            (None, Some(mcp)) => &mcp.path,
            both => panic!("{both:?}"),
        };
        assert_eq!(path, AgentSpec { tools, ..AgentSpec::default() }.tool_path());
    }
}

#[test]
fn a_human_decides_before_the_tools_that_are_named() {
    let approve = |share| ApproveSpec {
        tools: vec!["delete".to_owned()],
        share,
        think_time: Some(DurationSpec::Fixed(Nanos::from_secs(2))),
        path: "/v1/hitl/".to_owned(),
    };
    let spec = |share| AgentSpec { approve: Some(approve(share)), ..AgentSpec::default() };
    for (share, word, state) in [(1.0, "approve", "approved"), (0.0, "reject", "rejected")] {
        let mut task = task(spec(share));
        task.advance_with("", vec![call("c1", "read", "{}"), call("c2", "delete", r#"{"f":1}"#)]);
        assert_eq!(task.task_part(), Some(TaskPart::Tools), "`read` is not named");
        task.advance_by(result("one", false));
        assert_eq!((task.task_part(), task.scenario_of_turn().0), (Some(TaskPart::Approvals), 2));
        let details = json!({"name": "delete", "arguments": {"f": 1}});
        assert_eq!(body(&task), json!({"action": "tool_call", "details": details}));
        assert_eq!((&*plain(&task).path, task.think_time()), ("/v1/hitl", Nanos::ZERO));
        task.advance_by(approval("a/1", "pending"));
        assert_eq!(plain(&task).path, format!("/v1/hitl/a%2F1/{word}"));
        assert_eq!(task.think_time(), Nanos::from_secs(2), "the human thinks before the decision");
        task.advance_by(approval("a/1", state));
        assert_eq!(task.think_time(), Nanos::ZERO);
        let approved = state == "approved";
        if approved {
            assert_eq!(body(&task)["name"], "delete");
            task.advance_by(result("gone", false));
        }
        let last = messages(&task, Dialect::OpenaiChat)[3]["content"].clone();
        let refusal = "The user rejected this tool call.";
        assert_eq!(last, if approved { "gone" } else { refusal });
        let counts = TaskCounts {
            steps: 1,
            tool_calls: 1 + u16::from(approved),
            approvals: 1,
            approved: approved.into(),
            rejected: (!approved).into(),
            ..TaskCounts::default()
        };
        assert_eq!(task.task_counts(), counts);
    }
}

#[test]
fn the_share_of_approvals_is_kept_and_repeats_with_the_seed() {
    let all = "*".to_owned();
    let approve =
        ApproveSpec { tools: vec![all], share: 0.7, think_time: None, path: "/h".to_owned() };
    let spec = AgentSpec { approve: Some(approve), ..AgentSpec::default() };
    let decisions = || -> Vec<bool> {
        tasks(spec.clone(), 4_000)
            .into_iter()
            .map(|mut task: Conversation| {
                task.advance_with("", vec![call("c", "x", "{}")]);
                task.advance_by(approval("1", ""));
                plain(&task).path.ends_with("/approve")
            })
            .collect()
    };
    let first = decisions();
    let approved = first.iter().filter(|approved| **approved).count() as f64;
    // Four standard deviations of a binomial count.
    assert!((approved - 2_800.0).abs() < 4.0 * (4_000.0_f64 * 0.7 * 0.3).sqrt(), "{approved}");
    assert_eq!(first, decisions());
}

#[test]
fn a_bound_ends_a_task_and_its_last_calls_are_not_sent() {
    let mut short = task(AgentSpec { max_steps: 3, ..AgentSpec::default() });
    for step in 1..=3 {
        assert!(!short.is_over());
        short.advance_with("", vec![call("c", "x", "{}")]);
        if step < 3 {
            short.advance_by(result("r", false));
        }
    }
    let counts = TaskCounts { steps: 3, tool_calls: 2, ..TaskCounts::default() };
    assert_eq!((short.task_end(), short.task_counts()), (Some(TaskEnd::Bound), counts));
    assert!(short.turn().is_none());

    // The memory of a task is bounded: 16 MiB of results.
    let mut large = task(AgentSpec { max_steps: 100, ..AgentSpec::default() });
    let text = "x".repeat(3 << 20);
    let mut results = 0;
    while !large.is_over() {
        large.advance_with("", vec![call("c", "x", "{}")]);
        large.advance_by(result(&text, false));
        results += 1;
    }
    assert_eq!((results, large.task_end()), (6, Some(TaskEnd::Bound)));

    // Of the most calls that a decoder keeps there may have been more.
    let mut many = task(AgentSpec::default());
    many.advance_with("", vec![call("c", "x", "{}"); 128]);
    assert_eq!(many.task_end(), Some(TaskEnd::Bound));
    let mut fewer = task(AgentSpec::default());
    fewer.advance_with("", vec![call("c", "x", "{}"); 127]);
    (0..127).for_each(|_| fewer.advance_by(result("r", false)));
    assert_eq!((fewer.task_part(), fewer.index()), (Some(TaskPart::Chat), 128));
}

#[test]
fn an_answer_that_the_request_cannot_have_ends_the_task_as_failed() {
    let approve = ApproveSpec {
        tools: vec!["*".to_owned()],
        share: 1.0,
        think_time: None,
        path: "/h".to_owned(),
    };
    let asks = AgentSpec { approve: Some(approve), ..AgentSpec::default() };
    let calls = AgentSpec::default;
    let x = || vec![call("c", "x", "{}")];
    let failed = |mut task: Conversation, last: Option<PlainAnswer>| {
        match last {
            Some(answer) => task.advance_by(answer),
            None => task.advance_with("text", Vec::new()),
        }
        assert_eq!(task.task_end(), Some(TaskEnd::Failed));
        assert!(task.is_over() && task.turn().is_none());
    };
    failed(task(calls()), Some(result("a tool was not asked", false)));
    let mut waits = task(calls());
    waits.advance_with("", x());
    failed(waits, None);
    let mut unnamed = task(asks.clone());
    unnamed.advance_with("", x());
    failed(unnamed, Some(approval("", "pending")));
    let mut taken = task(asks);
    taken.advance_with("", x());
    taken.advance_by(approval("1", "pending"));
    failed(taken, Some(approval("1", "rejected")));
    // Another conversation has no such answers.
    let mut chat = crate::support::conversation(&scenario());
    chat.advance_by(result("r", false));
    assert_eq!((chat.index(), chat.task_end()), (0, None));
}

#[test]
fn a_text_that_was_sent_is_kept_and_can_be_encoded_again() {
    let mut task = task(AgentSpec::default());
    task.release_text();
    assert_eq!(messages(&task, Dialect::OpenaiChat).as_array().unwrap().len(), 1);
    task.advance_with("", vec![call("c", "x", "{}")]);
    task.release_text();
    task.restore_text();
    assert_eq!(body(&task)["name"], "x");
    task.advance_by(result("r", false));
    assert_eq!(messages(&task, Dialect::OpenaiChat).as_array().unwrap().len(), 3);
}
