//! The shapes of all responses as JSON, and streams against full responses. `tests/it/dialects.rs`
//! checks their exact bytes.

use serde_json::{Value, json};

use super::*;
use crate::model_output::{FinishReason, ToolCall, call_sections, sections};
use crate::response_plan::ResponsePlan;
use crate::rng::RequestRng;
use crate::stream_plan::StreamPlan;
use crate::timed_plan::TimedPlan as _;

const STREAMED: [Dialect; 3] =
    [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::AnthropicMessages];

fn output(
    tokens: u32,
    reasoning: u32,
    tool_call: bool,
    finish_reason: FinishReason,
) -> ModelOutput {
    let rng = RequestRng::new(1, Some(b"id"), 0);
    ModelOutput {
        rng,
        model: r#""m\"1""#.to_owned(),
        prompt_tokens: 11,
        sections: sections(tokens, reasoning, tool_call),
        calls: tool_call.then(|| ToolCall::lookup(rng)).into_iter().collect(),
        finish_reason,
        usage: true,
        stream_usage: true,
        vectors: 2,
        dimensions: 3,
    }
}

fn stream(dialect: Dialect, output: ModelOutput) -> Vec<Value> {
    let plan = ResponsePlan::immediate(output);
    let mut plan = StreamPlan::new(plan, dialect.stream_encoder().unwrap());
    let mut out = Vec::new();
    while plan.advance(1, &mut out).is_none() {}
    events(&String::from_utf8(out).unwrap())
}

/// The data of all events; each must be JSON, and agree with the event's name.
fn events(text: &str) -> Vec<Value> {
    assert!(text.ends_with("\n\n"), "{text}");
    let mut found = Vec::new();
    for event in text.trim_end().split("\n\n") {
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        if data != "[DONE]" {
            let value: Value = serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {data}"));
            if let Some(name) = event.lines().find_map(|line| line.strip_prefix("event: ")) {
                assert_eq!(value["type"], name);
            }
            found.push(value);
        }
    }
    found
}

/// Reasoning, text and arguments, joined from the content events.
fn texts_of_stream(dialect: Dialect, events: &[Value]) -> [String; 3] {
    let mut texts = [const { String::new() }; 3];
    for event in events {
        let delta = &event["choices"][0]["delta"];
        let places = match dialect {
            Dialect::OpenaiChat => [
                &delta["reasoning_content"],
                &delta["content"],
                &delta["tool_calls"][0]["function"]["arguments"],
            ],
            Dialect::AnthropicMessages => [
                &event["delta"]["thinking"],
                &event["delta"]["text"],
                &event["delta"]["partial_json"],
            ],
            _ => {
                let of = |kind| if event["type"] == kind { &event["delta"] } else { &Value::Null };
                [
                    of("response.reasoning_summary_text.delta"),
                    of("response.output_text.delta"),
                    of("response.function_call_arguments.delta"),
                ]
            }
        };
        for (text, place) in texts.iter_mut().zip(places) {
            text.push_str(place.as_str().unwrap_or_default());
        }
    }
    texts
}

/// The same, from a full response.
fn texts_of_full(dialect: Dialect, full: &Value) -> [String; 3] {
    match dialect {
        Dialect::OpenaiChat => {
            let message = &full["choices"][0]["message"];
            let call = &message["tool_calls"][0]["function"]["arguments"];
            [
                text_or_empty(&message["reasoning_content"]),
                text_or_empty(&message["content"]),
                text_or_empty(call),
            ]
        }
        Dialect::AnthropicMessages => {
            let content = &full["content"];
            let input = item_of_kind(content, "tool_use")["input"].clone();
            let input = if input.is_null() { String::new() } else { input.to_string() };
            [
                text_or_empty(&item_of_kind(content, "thinking")["thinking"]),
                text_or_empty(&item_of_kind(content, "text")["text"]),
                input,
            ]
        }
        _ => {
            let output = &full["output"];
            [
                text_or_empty(&item_of_kind(output, "reasoning")["summary"][0]["text"]),
                text_or_empty(&item_of_kind(output, "message")["content"][0]["text"]),
                text_or_empty(&item_of_kind(output, "function_call")["arguments"]),
            ]
        }
    }
}

fn text_or_empty(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn item_of_kind(list: &Value, kind: &str) -> Value {
    let found = list.as_array().unwrap().iter().find(|item| item["type"] == kind);
    found.cloned().unwrap_or_default()
}

#[test]
fn streams_have_the_content_of_the_full_response() {
    for dialect in STREAMED {
        for (tokens, reasoning, tool) in [(5, 0, false), (7, 3, false), (6, 2, true), (4, 4, false)]
        {
            let make = || output(tokens, reasoning, tool, FinishReason::Stop);
            let full: Value = serde_json::from_slice(&dialect.full_response(&make())).unwrap();
            let streamed = texts_of_stream(dialect, &stream(dialect, make()));
            assert_eq!(
                streamed,
                texts_of_full(dialect, &full),
                "{dialect:?}, {reasoning} of {tokens}"
            );
            assert_eq!(streamed[0].len(), 4 * reasoning as usize);
            let rest = 4 * (tokens - reasoning) as usize;
            if tool {
                let arguments: Value = serde_json::from_str(&streamed[2]).unwrap();
                assert_eq!(arguments["query"].as_str().unwrap().len(), rest);
            } else {
                assert_eq!(streamed[1].len(), rest);
            }
        }
    }
}

/// Id, name and arguments of each call, joined from the events of a stream.
fn calls_of_stream(dialect: Dialect, events: &[Value]) -> Vec<[String; 3]> {
    let mut calls: Vec<[String; 3]> = Vec::new();
    for event in events {
        let delta = &event["choices"][0]["delta"]["tool_calls"][0];
        let (start, index, piece) = match dialect {
            Dialect::OpenaiChat => {
                let start = [&delta["id"], &delta["function"]["name"]];
                (start, &delta["index"], &delta["function"]["arguments"])
            }
            Dialect::AnthropicMessages => {
                let block = &event["content_block"];
                let start = [&block["id"], &block["name"]];
                (start, &event["index"], &event["delta"]["partial_json"])
            }
            _ => {
                let added = event["type"] == "response.output_item.added";
                let item = if added { &event["item"] } else { &Value::Null };
                let is_delta = event["type"] == "response.function_call_arguments.delta";
                let piece = if is_delta { &event["delta"] } else { &Value::Null };
                ([&item["call_id"], &item["name"]], &event["output_index"], piece)
            }
        };
        if start[0].is_string() {
            calls.push([text_or_empty(start[0]), text_or_empty(start[1]), String::new()]);
        }
        if piece.is_string() {
            assert_eq!(index.as_u64(), Some(calls.len() as u64 - 1));
            calls.last_mut().unwrap()[2].push_str(piece.as_str().unwrap());
        }
    }
    calls
}

/// The same, from a full response.
fn calls_of_full(dialect: Dialect, full: &Value) -> Vec<[String; 3]> {
    let list = match dialect {
        Dialect::OpenaiChat => &full["choices"][0]["message"]["tool_calls"],
        Dialect::AnthropicMessages => &full["content"],
        _ => &full["output"],
    };
    let call = |item: &Value| match dialect {
        Dialect::OpenaiChat => {
            let function = &item["function"];
            [text_of(&item["id"]), text_of(&function["name"]), text_of(&function["arguments"])]
        }
        Dialect::AnthropicMessages => {
            [text_of(&item["id"]), text_of(&item["name"]), item["input"].to_string()]
        }
        _ => [text_of(&item["call_id"]), text_of(&item["name"]), text_of(&item["arguments"])],
    };
    list.as_array().unwrap().iter().map(call).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn several_calls_have_their_own_ids_names_and_arguments_in_both_forms() {
    let call = |id: u64, name: &str, arguments: &str| ToolCall {
        id,
        name: serde_json::to_string(name).unwrap(),
        arguments: Some(arguments.to_owned()),
    };
    let calls = vec![
        call(1, "é \"x\"", r#"{"a":"\"\\ 世界"}"#),
        call(2, "b", "{}"),
        call(3, "b", r#"{"n":[1,2.5,null]}"#),
    ];
    for dialect in STREAMED {
        let make = || ModelOutput {
            sections: call_sections(0, &calls),
            calls: calls.clone(),
            ..output(0, 0, false, FinishReason::Stop)
        };
        let full: Value = serde_json::from_slice(&dialect.full_response(&make())).unwrap();
        let prefix = if dialect == Dialect::AnthropicMessages { "toolu_" } else { "call_" };
        let expected: Vec<[String; 3]> = [
            (1, "é \"x\"", r#"{"a":"\"\\ 世界"}"#),
            (2, "b", "{}"),
            (3, "b", r#"{"n":[1,2.5,null]}"#),
        ]
        .map(|(id, name, text)| [format!("{prefix}{id:016x}"), name.to_owned(), text.to_owned()])
        .into();
        assert_eq!(calls_of_full(dialect, &full), expected, "{dialect:?}");
        let events = stream(dialect, make());
        assert_eq!(calls_of_stream(dialect, &events), expected, "{dialect:?}");
        if dialect == Dialect::OpenaiResponses {
            // The final event repeats the items of the full response.
            assert_eq!(events.last().unwrap()["response"]["output"], full["output"]);
        }
    }
}

#[test]
fn usage_is_the_same_in_both_forms() {
    let details = json!({"reasoning_tokens": 3});
    let cached = json!({"cached_tokens": 0});
    for (dialect, expected) in [
        (
            Dialect::OpenaiChat,
            json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
                "completion_tokens_details": details}),
        ),
        (
            Dialect::OpenaiResponses,
            json!({"input_tokens": 11, "input_tokens_details": cached, "output_tokens": 7,
                "output_tokens_details": details, "total_tokens": 18}),
        ),
        (Dialect::AnthropicMessages, json!({"input_tokens": 11, "output_tokens": 7})),
    ] {
        let make = || output(7, 3, false, FinishReason::Stop);
        let full: Value = serde_json::from_slice(&dialect.full_response(&make())).unwrap();
        assert_eq!(full["usage"], expected);
        let events = stream(dialect, make());
        let last = events.last().unwrap();
        let streamed = match dialect {
            Dialect::OpenaiChat => last["usage"].clone(),
            Dialect::OpenaiResponses => last["response"]["usage"].clone(),
            _ => {
                let input = &events[0]["message"]["usage"]["input_tokens"];
                let output = &events[events.len() - 2]["usage"]["output_tokens"];
                json!({"input_tokens": input, "output_tokens": output})
            }
        };
        assert_eq!(streamed, expected, "{dialect:?}");
        assert_eq!(full["model"], "m\"1");
    }
}

#[test]
fn without_usage_nothing_is_reported() {
    for dialect in STREAMED {
        let make = || ModelOutput { usage: false, ..output(3, 0, false, FinishReason::Stop) };
        let full: Value = serde_json::from_slice(&dialect.full_response(&make())).unwrap();
        assert!(full["usage"].is_null(), "{full}");
        let text = serde_json::to_string(&stream(dialect, make())).unwrap();
        assert!(!text.contains("_tokens\""), "{text}");
    }
}

#[test]
fn the_reason_for_the_end_is_named() {
    for (dialect, path, reasons) in [
        (Dialect::OpenaiChat, "/choices/0/finish_reason", ["stop", "tool_calls", "length"]),
        (Dialect::OpenaiResponses, "/status", ["completed", "completed", "incomplete"]),
        (Dialect::AnthropicMessages, "/stop_reason", ["end_turn", "tool_use", "max_tokens"]),
    ] {
        let cases = [
            (false, FinishReason::Stop),
            (true, FinishReason::Stop),
            (false, FinishReason::Length),
        ];
        for ((tool, finish), reason) in cases.into_iter().zip(reasons) {
            let make = || output(3, 0, tool, finish);
            let full: Value = serde_json::from_slice(&dialect.full_response(&make())).unwrap();
            assert_eq!(full.pointer(path).unwrap(), reason, "{dialect:?}");
            let events = serde_json::to_string(&stream(dialect, make())).unwrap();
            assert!(events.contains(&format!("\"{reason}\"")), "{reason} in {events}");
        }
    }
}

#[test]
fn responses_number_their_events_and_repeat_the_text() {
    let events = stream(Dialect::OpenaiResponses, output(6, 2, true, FinishReason::Stop));
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], index);
    }
    let [reasoning, _, arguments] = texts_of_stream(Dialect::OpenaiResponses, &events);
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(output[0]["summary"][0]["text"], reasoning);
    assert_eq!(output[1]["arguments"], arguments);
}

#[test]
fn messages_open_and_close_each_block_once_and_in_order() {
    let events = stream(Dialect::AnthropicMessages, output(3, 1, false, FinishReason::Stop));
    let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = "message_start content_block_start ping content_block_delta content_block_delta \
                    content_block_stop content_block_start content_block_delta content_block_delta \
                    content_block_stop message_delta message_stop";
    assert_eq!(names.join(" "), expected);
    assert_eq!(events[4]["delta"]["type"], "signature_delta");
    assert_eq!((&events[3]["index"], &events[7]["index"]), (&json!(0), &json!(1)));
}

#[test]
fn an_output_of_no_tokens_is_well_formed() {
    for dialect in STREAMED {
        let make = || output(0, 0, false, FinishReason::Stop);
        let _: Value = serde_json::from_slice(&dialect.full_response(&make())).unwrap();
        let events = stream(dialect, make());
        assert_eq!(texts_of_stream(dialect, &events), ["", "", ""]);
        let count = |name: &str| events.iter().filter(|event| event["type"] == name).count();
        assert_eq!(count("content_block_start"), count("content_block_stop"));
        assert_eq!(count("response.output_item.added"), count("response.output_item.done"));
    }
}

#[test]
fn embeddings_have_the_requested_number_of_numbers() {
    let output = ModelOutput { sections: Vec::new(), ..output(0, 0, false, FinishReason::Stop) };
    let full: Value =
        serde_json::from_slice(&Dialect::OpenaiEmbeddings.full_response(&output)).unwrap();
    assert_eq!(full["usage"], json!({"prompt_tokens": 11, "total_tokens": 11}));
    let vectors = full["data"].as_array().unwrap();
    assert_eq!((vectors.len(), &vectors[1]["index"]), (2, &json!(1)));
    for vector in vectors {
        let numbers = vector["embedding"].as_array().unwrap();
        assert_eq!(numbers.len(), 3);
        assert!(numbers.iter().all(|number| number.as_f64().unwrap().abs() < 1.0), "{full}");
    }
}

#[test]
fn errors_have_the_shape_of_their_dialect() {
    for (dialect, status, expected) in [
        (
            Some(Dialect::OpenaiChat),
            429,
            json!({"error": {"message": "a \"b\"", "type": "requests", "param": null,
                "code": "rate_limit_exceeded"}}),
        ),
        (
            None,
            404,
            json!({"error": {"message": "a \"b\"", "type": "invalid_request_error", "param": null,
                "code": "not_found"}}),
        ),
        (
            Some(Dialect::AnthropicMessages),
            503,
            json!({"type": "error", "error": {"type": "api_error", "message": "a \"b\""}}),
        ),
    ] {
        let body: Value = serde_json::from_slice(&error_body(dialect, status, "a \"b\"")).unwrap();
        assert_eq!(body, expected);
    }
}
