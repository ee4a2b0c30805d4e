//! Tool calls: kept from responses, and written into the next request.

use plimsoll_protocol::{
    Decoder, DecoderOptions, Dialect, Encoder, EncoderOptions, Message, RequestContent, Role,
    ToolCall, ToolResult, Turn,
};
use serde_json::{Value, json};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn body(dialect: Dialect, answer: &str, calls: &[ToolCall]) -> Value {
    let result =
        |call: &ToolCall| ToolResult { call_id: call.id.clone(), text: "it \"rains\"".into() };
    let messages = [
        Message::new(Role::User, "hi".into()),
        Message { tool_calls: calls.to_vec(), ..Message::new(Role::Assistant, answer.into()) },
        Message {
            tool_results: calls.iter().map(result).collect(),
            ..Message::new(Role::User, "and now?".into())
        },
    ];
    let content = RequestContent::Chat { system: None, messages: &messages };
    let mut out = Vec::new();
    let turn = Turn { content, stream: false, max_tokens: Some(9) };
    Encoder::new(dialect, &EncoderOptions::default())
        .unwrap()
        .encode_body(&turn, &mut out)
        .unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn two_calls() -> [ToolCall; 2] {
    [call("c1", "weather", r#"{"city":"Ulm"}"#), call("c2", "time", r#"{"broken"#)]
}

#[test]
fn chat_has_tool_calls_and_a_tool_message_for_each() {
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let expected = |content: Value| {
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": content, "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": function("weather", "{\"city\":\"Ulm\"}")},
                {"id": "c2", "type": "function", "function": function("time", "{}")},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "it \"rains\""},
            {"role": "tool", "tool_call_id": "c2", "content": "it \"rains\""},
            {"role": "user", "content": "and now?"},
        ])
    };
    let body = |answer| body(Dialect::OpenaiChat, answer, &two_calls())["messages"].clone();
    assert_eq!(body("I look."), expected("I look.".into()));
    assert_eq!(body(""), expected(Value::Null));
}

#[test]
fn responses_have_items_for_calls_and_outputs() {
    let body = body(Dialect::OpenaiResponses, "", &two_calls()[..1]);
    assert_eq!(
        body["input"],
        json!([
            {"type": "message", "role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c1", "name": "weather",
             "arguments": "{\"city\":\"Ulm\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "it \"rains\""},
            {"type": "message", "role": "user", "content": "and now?"},
        ])
    );
}

#[test]
fn anthropic_has_blocks_and_roles_alternate() {
    let body = body(Dialect::AnthropicMessages, "I look.", &two_calls());
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Ulm"}},
                {"type": "tool_use", "id": "c2", "name": "time", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "it \"rains\""},
                {"type": "tool_result", "tool_use_id": "c2", "content": "it \"rains\""},
                {"type": "text", "text": "and now?"},
            ]},
        ])
    );
}

fn keep(keep_text: bool) -> DecoderOptions {
    DecoderOptions { keep_text, ..DecoderOptions::default() }
}

fn decoded(dialect: Dialect, stream: bool, options: DecoderOptions, body: &str) -> Vec<ToolCall> {
    let mut decoder = Decoder::new(dialect, stream, options);
    decoder.head(200, None);
    decoder.feed(body.as_bytes(), &mut |_| {});
    assert_eq!(decoder.finish().name(), "completed", "{body}: {:?}", decoder.error_detail());
    decoder.tool_calls().to_vec()
}

fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat()
}

#[test]
fn tool_calls_of_whole_responses_are_kept() {
    let arguments = r#"{"city":"Ulm"}"#;
    let chat = json!({"choices": [{"message": {"content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}},
        {"type": "function", "function": {"name": "time", "arguments": "{}"}},
    ]}}]});
    let responses = json!({"output": [
        {"type": "tool_search_call", "arguments": {"an": "object"}},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": arguments},
        {"type": "function_call", "name": "time", "arguments": "{}"},
    ]});
    let messages = json!({"content": [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Ulm"}},
        {"type": "tool_use", "id": "", "name": "time", "input": {}},
    ]});
    for (dialect, body) in [
        (Dialect::OpenaiChat, chat),
        (Dialect::OpenaiResponses, responses),
        (Dialect::AnthropicMessages, messages),
    ] {
        let kept = decoded(dialect, false, keep(true), &body.to_string());
        let kept: Vec<_> = kept
            .iter()
            .map(|call: &ToolCall| -> (String, String, Value) {
                let arguments = serde_json::from_str(&call.arguments).unwrap();
                (call.id.clone(), call.name.clone(), arguments)
            })
            .collect();
        let weather = ("c1".to_owned(), "weather".to_owned(), json!({"city": "Ulm"}));
        assert_eq!(kept, [weather, (String::new(), "time".to_owned(), json!({}))], "{dialect:?}");
        assert!(decoded(dialect, false, keep(false), &body.to_string()).is_empty(), "not kept");
    }
}

#[test]
fn tool_calls_of_streams_are_put_together() {
    let tool = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let chat = events(&[
        tool(json!({"index": 0, "id": "c1", "function": {"name": "weather", "arguments": ""}})),
        tool(json!({"index": 0, "function": {"arguments": "{\"city\":"}})),
        tool(json!({"index": 1, "id": "c2", "function": {"name": "time", "arguments": "{}"}})),
        tool(json!({"index": 0, "function": {"arguments": "\"Ulm\"}"}})),
    ]) + "data: [DONE]\n\n";
    let block = |index: u32, id: &str, name: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        json!({"type": "content_block_start", "index": index, "content_block": block})
    };
    let part = |index: u32, json: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": json});
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    };
    let messages = events(&[
        block(0, "c1", "weather"),
        part(0, "{\"city\":"),
        part(0, "\"Ulm\"}"),
        block(1, "c2", "time"),
        part(1, "{}"),
        json!({"type": "message_stop"}),
    ]);
    let item = |id: &str, name: &str| {
        let item = json!({"type": "function_call", "call_id": id, "name": name, "arguments": ""});
        json!({"type": "response.output_item.added", "item": item})
    };
    let delta =
        |text: &str| json!({"type": "response.function_call_arguments.delta", "delta": text});
    let responses = events(&[
        item("c1", "weather"),
        delta("{\"city\":"),
        delta("\"Ulm\"}"),
        item("c2", "time"),
        delta("{}"),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ]);
    let expected = [call("c1", "weather", r#"{"city":"Ulm"}"#), call("c2", "time", "{}")];
    for (dialect, stream) in [
        (Dialect::OpenaiChat, chat),
        (Dialect::AnthropicMessages, messages),
        (Dialect::OpenaiResponses, responses),
    ] {
        assert_eq!(decoded(dialect, true, keep(true), &stream), expected, "{dialect:?}");
        assert!(decoded(dialect, true, keep(false), &stream).is_empty(), "not kept");
    }
}

/// The further members of a reply, as the request after it has them: the reply's message or items.
fn repeated(dialect: Dialect, stream: bool, answer: &str) -> Value {
    let options = DecoderOptions { keep_text: true, ..DecoderOptions::default() };
    let mut decoder = Decoder::new(dialect, stream, options);
    let kind: &[u8] = if stream { b"text/event-stream" } else { b"application/json" };
    decoder.head(200, Some(kind));
    decoder.feed(answer.as_bytes(), &mut |_| {});
    decoder.finish();
    let reply = Message {
        tool_calls: decoder.tool_calls().to_vec(),
        kept: decoder.kept().cloned().map(std::sync::Arc::new),
        ..Message::new(Role::Assistant, decoder.text().into())
    };
    let messages = [Message::new(Role::User, "hi".into()), reply];
    let content = RequestContent::Chat { system: None, messages: &messages };
    let mut out = Vec::new();
    let encoder = Encoder::new(dialect, &EncoderOptions::default()).unwrap();
    encoder.encode_body(&Turn { content, stream: false, max_tokens: None }, &mut out).unwrap();
    let mut body: Value = serde_json::from_slice(&out).unwrap();
    let list = if dialect == Dialect::OpenaiResponses { "input" } else { "messages" };
    let mut all = body[list].as_array_mut().unwrap().split_off(1);
    if all.len() == 1 { all.remove(0) } else { all.into() }
}

#[test]
fn signatures_of_thoughts_are_repeated() {
    // Gemini signs the first of parallel calls; both have the position 0.
    let call = |id: &str, extra: Value| {
        json!({ "index": 0, "id": id, "type": "function", "extra_content": extra,
            "function": { "name": "time", "arguments": "{}" } })
    };
    let signed = json!({ "google": { "thought_signature": "c2ln" } });
    let calls = [call("a", signed.clone()), call("b", Value::Null)];
    let whole = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message":
        { "role": "assistant", "content": null, "reasoning_content": "Hm.", "reasoning": "Hm.",
          "annotations": ["x"], "tool_calls": calls } }] });
    let expected = json!({ "role": "assistant", "content": null, "reasoning_content": "Hm.",
        "tool_calls": [
            { "id": "a", "type": "function", "extra_content": signed,
              "function": { "name": "time", "arguments": "{}" } },
            { "id": "b", "type": "function", "function": { "name": "time", "arguments": "{}" } }] });
    assert_eq!(repeated(Dialect::OpenaiChat, false, &whole.to_string()), expected);
    let event = |delta: Value| {
        format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
    };
    let events = [
        event(json!({ "role": "assistant", "reasoning_content": "H" })),
        event(json!({ "reasoning_content": "m." })),
        event(json!({ "tool_calls": [calls[0]] })),
        event(json!({ "tool_calls": [calls[1]] })),
        "data: [DONE]\n\n".to_owned(),
    ];
    assert_eq!(repeated(Dialect::OpenaiChat, true, &events.concat()), expected);
}

#[test]
fn thinking_blocks_and_reasoning_items_are_repeated() {
    let thought = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let hidden = json!({ "type": "redacted_thinking", "data": "xyz" });
    let text = json!({ "type": "text", "text": "Yes." });
    let expected = json!({ "role": "assistant", "content": [thought, hidden, text] });
    let whole = json!({ "content": [thought, hidden, text], "stop_reason": "end_turn" });
    assert_eq!(repeated(Dialect::AnthropicMessages, false, &whole.to_string()), expected);
    let start = |block: &Value| json!({ "type": "content_block_start", "content_block": block });
    let delta = |delta: Value| json!({ "type": "content_block_delta", "delta": delta });
    let events = [
        start(&json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(json!({ "type": "thinking_delta", "thinking": "H" })),
        delta(json!({ "type": "thinking_delta", "thinking": "m." })),
        delta(json!({ "type": "signature_delta", "signature": "c2ln" })),
        start(&hidden),
        start(&json!({ "type": "text", "text": "" })),
        delta(json!({ "type": "text_delta", "text": "Yes." })),
        json!({ "type": "message_stop" }),
    ];
    let events = events
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    assert_eq!(repeated(Dialect::AnthropicMessages, true, &events.concat()), expected);

    let item =
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" });
    let message =
        json!({ "type": "message", "content": [{ "type": "output_text", "text": "Yes." }] });
    let whole = json!({ "status": "completed", "output": [item, message] });
    let repeated = repeated(Dialect::OpenaiResponses, false, &whole.to_string());
    assert_eq!((&repeated[0], &repeated[1]["content"]), (&item, &json!("Yes.")));
}
