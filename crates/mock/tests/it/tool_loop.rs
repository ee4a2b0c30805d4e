//! Models that call tools until the conversation holds enough results, in every chat dialect.

use plimsoll_mock::{Mock, ToolTurnRecord};
use serde_json::{Value, json};

use crate::support::{Client, Response, finish, spawn};

const CONFIG: &str = "{log: memory, workers: 2, models: {
    agent: {output: 5, tool_loop: {steps: 2, tools: [search, 'ré\"ad'], arguments: 41, parallel: 2}},
    fixed: {tool_loop: {arguments: {text: 'a \"b\"', list: [1]}}},
    varied: {output: 1, tool_loop: {steps: {uniform: {min: 1, max: 5}}, tools: [t]}}}}";

const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

/// Sends a conversation of a dialect; the member that holds it is `input` in responses.
fn ask(mock: &Mock, path: &str, model: &str, stream: bool, conversation: &Value) -> Response {
    let key = if path.ends_with("responses") { "input" } else { "messages" };
    let mut body = json!({"model": model, "max_tokens": 50, "stream": stream});
    body[key] = conversation.clone();
    let headers = [("x-request-id", "one id for all requests")];
    Client::connect(mock).post(path, &headers, &body.to_string())
}

/// The calls of an answer, as (id, name, arguments).
fn calls(path: &str, answer: &Value) -> Vec<(String, String, Value)> {
    let parsed = |value: &Value| serde_json::from_str(value.as_str().unwrap()).unwrap();
    match path {
        "/v1/chat/completions" => list_of(&answer["choices"][0]["message"]["tool_calls"])
            .iter()
            .map(|call| (&call["id"], &call["function"]))
            .map(|(id, call)| (text_of(id), text_of(&call["name"]), parsed(&call["arguments"])))
            .collect(),
        "/v1/responses" => list_of(&answer["output"])
            .iter()
            .filter(|item| item["type"] == "function_call")
            .map(|call| {
                (text_of(&call["call_id"]), text_of(&call["name"]), parsed(&call["arguments"]))
            })
            .collect(),
        _ => list_of(&answer["content"])
            .iter()
            .filter(|part| part["type"] == "tool_use")
            .map(|call| (text_of(&call["id"]), text_of(&call["name"]), call["input"].clone()))
            .collect(),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn list_of(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}

/// Adds an answer and the results of its calls to the conversation.
fn go_on(path: &str, conversation: &mut Value, answer: &Value, ids: &[String]) {
    let list = conversation.as_array_mut().unwrap();
    match path {
        "/v1/chat/completions" => {
            list.push(answer["choices"][0]["message"].clone());
            list.extend(
                ids.iter()
                    .map(|id| json!({"role": "tool", "tool_call_id": id, "content": "found"})),
            );
        }
        "/v1/responses" => {
            list.extend(answer["output"].as_array().unwrap().iter().cloned());
            list.extend(ids.iter().map(
                |id| json!({"type": "function_call_output", "call_id": id, "output": "found"}),
            ));
        }
        _ => {
            list.push(json!({"role": "assistant", "content": answer["content"]}));
            list.push(
                json!({"role": "user", "content": ids.iter().map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "found"})).collect::<Vec<_>>()}),
            );
        }
    }
}

/// Why an answer ended, in its dialect.
fn reason(path: &str, answer: &Value) -> Value {
    match path {
        "/v1/chat/completions" => answer["choices"][0]["finish_reason"].clone(),
        "/v1/responses" => answer["status"].clone(),
        _ => answer["stop_reason"].clone(),
    }
}

#[test]
fn tools_are_called_for_the_configured_rounds_in_every_dialect_streamed_and_not() {
    for (path, call_reason, end) in [
        (PATHS[0], "tool_calls", "stop"),
        (PATHS[1], "completed", "completed"),
        (PATHS[2], "tool_use", "end_turn"),
    ] {
        let mock = spawn(CONFIG);
        let mut conversation = json!([{"role": "user", "content": "look it up"}]);
        let mut ids = Vec::new();
        for round in 0..3 {
            let streamed = ask(&mock, path, "agent", true, &conversation);
            let answer = ask(&mock, path, "agent", false, &conversation).json();
            let found = calls(path, &answer);
            let of_round: Vec<String> = found.iter().map(|(id, ..)| id.clone()).collect();
            if round < 2 {
                let names: Vec<&str> = found.iter().map(|(_, name, _)| name.as_str()).collect();
                assert_eq!(names, ["search", "ré\"ad"], "{path}");
                assert!(found.iter().all(|(.., arguments)| arguments.to_string().len() == 41));
                assert_eq!(reason(path, &answer), call_reason);
            } else {
                assert_eq!((found.len(), reason(path, &answer)), (0, json!(end)), "{path}");
            }
            // The same request gets the same calls in both forms.
            assert!(of_round.iter().all(|id| streamed.text().contains(id.as_str())), "{path}");
            let word = if round < 2 { call_reason } else { end };
            assert!(streamed.complete && streamed.text().contains(&format!("\"{word}\"")));
            go_on(path, &mut conversation, &answer, &of_round);
            ids.extend(of_round);
        }
        // A new task of the same user starts at round 0.
        conversation.as_array_mut().unwrap().push(json!({"role": "user", "content": "once more"}));
        let again = ask(&mock, path, "agent", false, &conversation).json();
        assert_eq!(calls(path, &again).len(), 2, "{path}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4, "one id for each call, though all requests have the same id");
        let turns: Vec<_> = finish(mock).iter().map(|record| record.tool_turn.unwrap()).collect();
        let turn = |round, calls| ToolTurnRecord { round, steps: 2, calls };
        let twice = |turn| [turn, turn];
        let expected = [twice(turn(0, 2)), twice(turn(1, 2)), twice(turn(2, 0))].concat();
        assert_eq!(turns, [expected, vec![turn(0, 2)]].concat());
    }
}

#[test]
fn results_that_are_lost_or_mixed_up_get_400_and_the_connection_stays() {
    let mock = spawn(CONFIG);
    for path in PATHS {
        let mut conversation = json!([{"role": "user", "content": "look it up"}]);
        let answer = ask(&mock, path, "agent", false, &conversation).json();
        let ids: Vec<String> = calls(path, &answer).into_iter().map(|(id, ..)| id).collect();
        let wrong = [ids[0].clone(), "call_of_another_conversation".to_owned()];
        for given in [&ids[..1], &wrong[..], &[]] {
            let mut broken = conversation.clone();
            go_on(path, &mut broken, &answer, given);
            let refused = ask(&mock, path, "agent", false, &broken);
            assert_eq!(refused.status, 400, "{path} {given:?}");
            assert!(refused.json()["error"]["message"].is_string());
        }
        go_on(path, &mut conversation, &answer, &ids);
        assert_eq!(ask(&mock, path, "agent", false, &conversation).status, 200);
    }
    let log = finish(mock);
    let refused = log.iter().filter(|record| record.status == 400);
    assert_eq!(refused.filter(|record| record.tool_turn.is_none()).count(), 9);
}

#[test]
fn only_offered_tools_are_called_where_none_are_named_and_a_header_overrides_the_loop() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    let mut ask = |headers: &[(&str, &str)], extra: Value| {
        let mut body = json!({"model": "fixed", "messages": [{"role": "user", "content": "x"}]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        client.post(PATHS[0], headers, &body.to_string()).json()["choices"][0].clone()
    };
    let tools = json!([{"type": "function", "function": {"name": "echo"}}]);
    let call = ask(&[], json!({"tools": tools}));
    let function = &call["message"]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "echo");
    let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"text": "a \"b\"", "list": [1]}));
    assert_eq!(ask(&[], json!({}))["finish_reason"], "stop");
    let none = json!({"tools": tools, "tool_choice": "none"});
    assert_eq!(ask(&[], none)["finish_reason"], "stop");
    let text = ask(&[("x-mock-tool-call", "false")], json!({"tools": tools}));
    assert_eq!(text["finish_reason"], "stop");
}

#[test]
fn a_task_keeps_its_number_of_steps_in_all_its_turns() {
    let mock = spawn(CONFIG);
    let mut lengths = Vec::new();
    for task in 0..8 {
        let mut conversation = json!([{"role": "user", "content": format!("task {task}")}]);
        let mut rounds = 0;
        loop {
            let answer = ask(&mock, PATHS[0], "varied", false, &conversation).json();
            let ids: Vec<String> =
                calls(PATHS[0], &answer).into_iter().map(|(id, ..)| id).collect();
            if ids.is_empty() {
                break;
            }
            rounds += 1;
            assert!(rounds <= 5);
            go_on(PATHS[0], &mut conversation, &answer, &ids);
        }
        lengths.push(rounds);
    }
    let log = finish(mock);
    let planned: Vec<u32> = log
        .iter()
        .filter_map(|record| record.tool_turn)
        .filter(|turn| turn.round == 0)
        .map(|turn| turn.steps)
        .collect();
    assert_eq!(lengths, planned);
    assert!(lengths.iter().any(|length| *length != lengths[0]), "{lengths:?}");
    let requests: u32 = lengths.iter().map(|rounds| rounds + 1).sum();
    assert_eq!(log.len(), requests as usize);
}
