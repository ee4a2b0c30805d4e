//! Tests of the translation of errors, and of requests and streams that cannot be translated.

use std::collections::BTreeMap;

use super::*;

fn translator(caller: Dialect) -> Translator {
    let upstream = match caller {
        Dialect::OpenAi => Dialect::Anthropic,
        Dialect::Anthropic => Dialect::OpenAi,
    };
    Translator::between(caller, upstream).unwrap()
}

#[test]
fn there_is_no_translator_for_equal_dialects() {
    assert_eq!(Translator::between(Dialect::OpenAi, Dialect::OpenAi), None);
    assert_eq!(Translator::between(Dialect::Anthropic, Dialect::Anthropic), None);
}

/// The caller, the field at fault, and the body.
const REJECTED: &[(Dialect, &str, &str)] = &[
    (
        Dialect::OpenAi,
        "messages[0].content[0].type",
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}"#,
    ),
    (
        Dialect::OpenAi,
        "messages[0].tool_calls[0].function.arguments",
        r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}]}"#,
    ),
    (
        Dialect::OpenAi,
        "messages[0].tool_calls[0].function.name",
        r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":7,"arguments":"{}"}}]}]}"#,
    ),
    (
        Dialect::OpenAi,
        "messages[0].role",
        r#"{"model":"m","messages":[{"role":"function","content":"x"}]}"#,
    ),
    (
        Dialect::OpenAi,
        "messages[0].tool_call_id",
        r#"{"model":"m","messages":[{"role":"tool","content":"x"}]}"#,
    ),
    (Dialect::OpenAi, "n", r#"{"model":"m","messages":[],"n":2}"#),
    (
        Dialect::OpenAi,
        "tools[0].type",
        r#"{"model":"m","messages":[],"tools":[{"type":"web_search"}]}"#,
    ),
    (
        Dialect::Anthropic,
        "messages[0].content[0].type",
        r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"document"}]}]}"#,
    ),
    (
        Dialect::Anthropic,
        "tools[0].type",
        r#"{"model":"m","max_tokens":1,"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#,
    ),
    (
        Dialect::Anthropic,
        "messages[0].role",
        r#"{"model":"m","max_tokens":1,"messages":[{"role":"system","content":"x"}]}"#,
    ),
    (
        Dialect::Anthropic,
        "temperature",
        r#"{"model":"m","max_tokens":1,"messages":[],"temperature":"hot"}"#,
    ),
];

#[test]
fn requests_without_an_equivalent_are_rejected_and_name_the_field() {
    for (caller, field, body) in REJECTED {
        let error =
            translator(*caller).request(body.as_bytes(), LimitName::default()).expect_err(body);
        assert_eq!((error.status(), error.field()), (400, Some(*field)), "{error}");
    }
}

#[test]
fn deeply_nested_tool_call_arguments_are_rejected() {
    let arguments = format!("{}{}", r#"{\"a\":"#.repeat(100), "}".repeat(100));
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"assistant","tool_calls":[{{"id":"a","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}]}}]}}"#
    );
    assert!(translator(Dialect::OpenAi).request(body.as_bytes(), LimitName::default()).is_err());
}

#[test]
fn finish_reasons_survive_a_round_trip() {
    for reason in ["stop", "length", "tool_calls", "content_filter"] {
        assert_eq!(
            finish_reason::to_openai(finish_reason::to_anthropic(reason, false), false),
            reason
        );
    }
    assert_eq!(finish_reason::to_openai("stop_sequence", false), "stop");
    assert_eq!(finish_reason::to_anthropic("function_call", false), "tool_use");
}

fn json(body: &[u8]) -> serde_json::Value {
    serde_json::from_slice(body).unwrap()
}

#[test]
fn upstream_errors_are_translated() {
    let anthropic = br#"{"type":"error","error":{"type":"overloaded_error","message":"Over\"loaded"},"request_id":"r"}"#;
    let (status, body) = translator(Dialect::OpenAi).error(529, anthropic);
    let expected = r#"{"error":{"message":"Over\"loaded","type":"server_error","param":null,"code":"overloaded"}}"#;
    assert_eq!((status, json(&body)), (503, json(expected.as_bytes())));
    let openai = br#"{"error":{"message":"Slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;
    let (status, body) = translator(Dialect::Anthropic).error(429, openai);
    let expected = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#;
    assert_eq!((status, json(&body)), (429, json(expected.as_bytes())));
}

#[test]
fn the_body_of_an_unknown_error_is_not_repeated() {
    let (status, body) = translator(Dialect::Anthropic).error(502, b"<html>secret</html>");
    let expected = r#"{"type":"error","error":{"type":"api_error","message":"the upstream answered with status 502"}}"#;
    assert_eq!((status, json(&body)), (502, json(expected.as_bytes())));
}

fn fed(
    caller: Dialect,
    stream: &str,
) -> (String, Result<(), DialectError>, Result<(), DialectError>) {
    let mut translation = translator(caller).stream(StreamSettings::default());
    let mut out = Vec::new();
    let fed = translation.feed(stream.as_bytes(), &mut out);
    let finished = translation.finish(&mut out);
    (String::from_utf8(out).unwrap(), fed, finished)
}

#[test]
fn an_error_event_is_translated_and_ends_the_stream() {
    let source = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let (out, fed_well, finished) = fed(Dialect::OpenAi, source);
    let expected =
        br#"{"error":{"message":"no","type":"server_error","param":null,"code":"overloaded"}}"#;
    let data = out.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
    assert_eq!(json(data.as_bytes()), json(expected));
    assert_eq!((fed_well, finished), (Ok(()), Ok(())));
    let source = "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\",\"code\":500}}\n\ndata: [DONE]\n\n";
    let (out, ..) = fed(Dialect::Anthropic, source);
    let expected = br#"{"type":"error","error":{"type":"api_error","message":"no"}}"#;
    let data = out.strip_prefix("event: error\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
    assert!(data.starts_with(r#"{"type":"error","#), "{data}");
    assert_eq!(json(data.as_bytes()), json(expected));
}

#[test]
fn a_truncated_stream_gets_no_final_events() {
    let chunk = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (out, fed_well, finished) = fed(Dialect::Anthropic, chunk);
    assert_eq!((fed_well, finished), (Ok(()), Err(DialectError::Truncated)));
    assert!(!out.contains("message_delta") && !out.contains("message_stop"), "{out}");
    let start = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"mess";
    let (out, _, finished) = fed(Dialect::OpenAi, start);
    assert_eq!(finished, Err(DialectError::Truncated));
    assert!(!out.contains("[DONE]"), "{out}");
}

#[test]
fn a_stream_that_lacks_only_its_end_mark_gets_it() {
    let openai = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
    let (out, _, finished) = fed(Dialect::Anthropic, openai);
    assert_eq!((finished, out.matches("event: message_stop").count()), (Ok(()), 1), "{out}");
    let anthropic = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n";
    let (out, _, finished) = fed(Dialect::OpenAi, anthropic);
    assert_eq!((finished, out.matches("[DONE]").count()), (Ok(()), 1), "{out}");
    // Not in the middle of an event: more was to come.
    let (_, _, finished) = fed(Dialect::OpenAi, &format!("{anthropic}data: {{\"type\""));
    assert_eq!(finished, Err(DialectError::Truncated));
}

/// vLLM's `continuous_usage_stats`: each chunk has the usage so far, and the last one the total.
#[test]
fn usage_beside_a_choice_is_not_yet_the_whole() {
    let usage =
        |tokens: u32| format!(r#""usage":{{"prompt_tokens":10,"completion_tokens":{tokens}}}"#);
    let chunk = |choice: &str, tokens: u32| {
        format!(
            "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{choice}],{}}}\n\n",
            usage(tokens)
        )
    };
    let text = r#"{"index":0,"delta":{"content":"hi"},"finish_reason":null}"#;
    let last = r#"{"index":0,"delta":{},"finish_reason":"stop"}"#;
    let source = [&*chunk(text, 1), &chunk(last, 1), &chunk("", 5), "data: [DONE]\n\n"].concat();
    let (out, _, finished) = fed(Dialect::Anthropic, &source);
    assert_eq!(finished, Ok(()));
    let deltas = out.matches("event: message_delta").count();
    assert!(deltas == 1 && out.contains("\"output_tokens\":5"), "{out}");
}

#[test]
fn a_stream_without_a_usage_chunk_still_ends() {
    let source = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let (out, _, finished) = fed(Dialect::Anthropic, source);
    assert_eq!(finished, Ok(()));
    assert!(out.contains("\"stop_reason\":\"max_tokens\""), "{out}");
    assert!(out.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "{out}");
}

#[test]
fn an_invalid_event_is_the_upstreams_fault() {
    let (_, fed_well, finished) = fed(Dialect::Anthropic, "data: {\"choices\":5}\n\n");
    assert_eq!(fed_well.map_err(|error| error.status()), Err(502));
    assert_eq!(finished, Ok(()), "failed, not truncated");
}

/// A chunk with a delta, and the reason of the end if there is one.
fn chunk(delta: &str, reason: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
    )
}

fn call(members: &str, function: &str) -> String {
    chunk(&format!(r#"{{"tool_calls":[{{{members}"function":{{{function}}}}}]}}"#), "null")
}

/// The blocks of tool calls in a stream of messages, as an SDK reads them, and the stop reason.
fn read_messages(stream: &str) -> (Vec<(String, String, String)>, String) {
    let mut calls: BTreeMap<u64, (String, String, String)> = BTreeMap::default();
    let mut reason = String::new();
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: serde_json::Value = serde_json::from_str(data).unwrap();
        let index = event["index"].as_u64().unwrap_or_default();
        let block = &event["content_block"];
        if block["type"] == "tool_use" {
            let text = |name: &str| block[name].as_str().unwrap().to_owned();
            calls.insert(index, (text("id"), text("name"), String::new()));
        }
        if let Some(piece) = event["delta"]["partial_json"].as_str() {
            calls.get_mut(&index).unwrap().2.push_str(piece);
        }
        if let Some(text) = event["delta"]["stop_reason"].as_str() {
            text.clone_into(&mut reason);
        }
    }
    (calls.into_values().collect(), reason)
}

#[test]
fn streamed_calls_are_told_apart_however_the_server_numbers_them() {
    let add = r#""name":"add","arguments":"{\"a\":1}""#;
    let multiply = r#""name":"mul","arguments":"{\"b\":2}""#;
    let rows = [
        (
            "counted",
            call(r#""index":0,"id":"x","#, add) + &call(r#""index":1,"id":"y","#, multiply),
        ),
        (
            "index 0",
            call(r#""index":0,"id":"x","#, add) + &call(r#""index":0,"id":"y","#, multiply),
        ),
        ("no index", call(r#""id":"x","#, add) + &call(r#""id":"y","#, multiply)),
        ("null index", call(r#""index":null,"id":"x","#, add) + &call(r#""id":"y","#, multiply)),
        (
            "in pieces",
            call(r#""index":0,"id":"x","#, r#""name":"add","arguments":"{\"a\"""#)
                + &call(r#""index":0,"id":"","#, r#""name":"","arguments":":1}""#)
                + &call(r#""index":0,"id":"y","#, multiply),
        ),
        (
            "in turn",
            call(r#""index":0,"id":"x","#, r#""name":"add","arguments":"""#)
                + &call(r#""index":1,"id":"y","#, r#""name":"mul","arguments":"{""#)
                + &call(r#""index":0,"#, r#""arguments":"{\"a\":""#)
                + &call(r#""index":1,"#, r#""arguments":"\"b\":2}""#)
                + &call(r#""index":0,"#, r#""arguments":"1}""#),
        ),
        (
            "the id in every piece",
            call(r#""id":"x","#, r#""name":"add","arguments":"{\"a\":""#)
                + &call(r#""id":"y","#, multiply)
                + &call(r#""id":"x","#, r#""arguments":"1}""#),
        ),
        (
            "arguments as an object",
            call(r#""index":0,"id":"x","#, r#""name":"add","arguments":{"a":1}"#)
                + &call(r#""index":0,"id":"y","#, multiply),
        ),
    ];
    for (case, source) in rows {
        for reason in ["\"tool_calls\"", "\"stop\""] {
            let stream = format!("{source}{}data: [DONE]\n\n", chunk("{}", reason));
            let (out, fed_well, finished) = fed(Dialect::Anthropic, &stream);
            assert_eq!((fed_well, finished), (Ok(()), Ok(())), "{case}");
            let (calls, stop_reason) = read_messages(&out);
            let expected = [("x", "add", "{\"a\":1}"), ("y", "mul", "{\"b\":2}")]
                .map(|(id, name, json)| (id.to_owned(), name.to_owned(), json.to_owned()));
            assert_eq!(calls, expected, "{case}: {out}");
            assert_eq!(stop_reason, "tool_use", "{case}");
        }
    }
}

#[test]
fn calls_without_ids_get_some_and_text_in_between_comes_later() {
    let source = call(r#""index":0,"#, r#""name":"f","arguments":"{""#)
        + &chunk(r#"{"content":"late"}"#, "null")
        + &call(r#""index":0,"#, r#""arguments":"}""#)
        + &call(r#""index":0,"#, r#""name":"g","arguments":"{}""#)
        + "data: [DONE]\n\n";
    let (out, fed_well, _) = fed(Dialect::Anthropic, &source);
    assert_eq!(fed_well, Ok(()));
    let (calls, stop_reason) = read_messages(&out);
    let names: Vec<_> = calls.iter().map(|(id, name, json)| (&**id, &**name, &**json)).collect();
    assert_eq!(names, [("call_0", "f", "{}"), ("call_1", "g", "{}")]);
    assert_eq!(stop_reason, "tool_use");
    assert!(out.find("late") > out.find("call_1"), "{out}");
}

#[test]
fn a_call_that_was_complete_cannot_go_on() {
    let source = call(r#""index":0,"id":"x","#, r#""name":"f","arguments":"{}""#)
        + &call(r#""index":1,"id":"y","#, r#""name":"g","arguments":"{}""#)
        + &call(r#""index":0,"#, r#""arguments":"more""#);
    let (_, fed_well, _) = fed(Dialect::Anthropic, &source);
    assert!(matches!(fed_well, Err(DialectError::InvalidResponse(_))));
}

fn block_start(index: u8, id: &str, input: &str) -> String {
    format!(
        "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"f\",\"input\":{input}}}}}\n\n"
    )
}

/// The arguments of each call in a stream of chunks, and the finish reason.
fn read_chunks(stream: &str) -> (Vec<String>, String) {
    let (mut calls, mut reason) = (Vec::new(), String::new());
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    for data in data.filter(|data| *data != "[DONE]") {
        let event: serde_json::Value = serde_json::from_str(data).unwrap();
        let choice = &event["choices"][0];
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            calls.resize(calls.len().max(index + 1), String::new());
            calls[index].push_str(call["function"]["arguments"].as_str().unwrap());
        }
        if let Some(text) = choice["finish_reason"].as_str() {
            text.clone_into(&mut reason);
        }
    }
    (calls, reason)
}

#[test]
fn streamed_blocks_become_calls_with_json_arguments() {
    let piece = |index: u8, json: &str| {
        let json = serde_json::Value::from(json);
        format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{json}}}}}\n\n"
        )
    };
    let stop =
        |index: u8| format!("data: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n");
    let rows = [
        ("without arguments", block_start(0, "x", "{}") + &piece(0, "") + &stop(0), vec!["{}"]),
        ("without a delta", block_start(0, "x", "{}") + &stop(0), vec!["{}"]),
        ("without a stop", block_start(0, "x", "{}"), vec!["{}"]),
        ("at once", block_start(0, "x", r#"{"a":1}"#) + &stop(0), vec![r#"{"a":1}"#]),
        (
            "one index for two",
            block_start(0, "x", "{}")
                + &piece(0, r#"{"a":1}"#)
                + &stop(0)
                + &block_start(0, "y", "{}")
                + &piece(0, r#"{"b":2}"#)
                + &stop(0),
            vec![r#"{"a":1}"#, r#"{"b":2}"#],
        ),
        (
            "in turn",
            block_start(0, "x", "{}")
                + &block_start(1, "y", "{}")
                + &piece(1, r#"{"b":2}"#)
                + &piece(0, r#"{"a":1}"#)
                + &stop(0)
                + &stop(1),
            vec![r#"{"a":1}"#, r#"{"b":2}"#],
        ),
    ];
    for (case, blocks, arguments) in rows {
        for reason in ["tool_use", "end_turn"] {
            let source = format!(
                "{blocks}data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\"}}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"
            );
            let (out, fed_well, _) = fed(Dialect::OpenAi, &source);
            assert_eq!(fed_well, Ok(()), "{case}");
            let (calls, finish_reason) = read_chunks(&out);
            assert_eq!(
                (calls, &*finish_reason),
                (arguments.iter().map(|one| (*one).to_owned()).collect(), "tool_calls"),
                "{case}: {out}"
            );
        }
    }
}

#[test]
fn whole_answers_keep_calls_whatever_the_reason_says() {
    let chat = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"x","function":{"name":"f","arguments":null}},{"function":{"name":"g","arguments":{"b":2}}}]},"finish_reason":"stop"}]}"#;
    let answer = translator(Dialect::Anthropic).response(chat.as_bytes(), 0).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["stop_reason"], "tool_use");
    assert_eq!(answer["content"][0]["input"], serde_json::json!({}));
    assert_eq!(
        (&answer["content"][1]["id"], &answer["content"][1]["input"]),
        (&"call_1".into(), &serde_json::json!({"b": 2}))
    );
    let message = r#"{"type":"message","content":[{"type":"tool_use","id":"x","name":"f"}],"stop_reason":"end_turn"}"#;
    let answer = translator(Dialect::OpenAi).response(message.as_bytes(), 0).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["arguments"], "{}");
}

#[test]
fn members_of_other_types_do_not_end_a_stream() {
    let rows = [
        r#"{"choices":null}"#,
        r#"{"choices":[{"delta":null}]}"#,
        r#"{"id":null,"model":7,"choices":[]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":null}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10.0,"completion_tokens":5.0,"prompt_tokens_details":"none"}}"#,
        r#"{"choices":[],"usage":"none"}"#,
        r#"{"choices":[{"index":null,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":null,"refusal":[]},"finish_reason":null,"logprobs":3}]}"#,
    ];
    for row in rows {
        let source = format!(
            "data: {row}\n\n{}{}data: [DONE]\n\n",
            chunk(r#"{"content":[{"type":"text","text":"h"},{"text":"i"}]}"#, "null"),
            chunk("{}", "\"stop\"")
        );
        let (out, fed_well, finished) = fed(Dialect::Anthropic, &source);
        assert_eq!((fed_well, finished), (Ok(()), Ok(())), "{row}");
        assert!(out.contains(r#""text":"hi""#), "{row}: {out}");
    }
    let counts = r#"{"choices":[{"message":{"content":"hi"}}],"created":1.5,"usage":{"prompt_tokens":10.0,"completion_tokens":"5"}}"#;
    let answer = translator(Dialect::Anthropic).response(counts.as_bytes(), 0).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(
        (&answer["usage"]["input_tokens"], &answer["usage"]["output_tokens"]),
        (&10.into(), &5.into())
    );
}

#[test]
fn errors_keep_their_message_in_every_form() {
    for (body, message) in [
        (r#"{"error":"model not found"}"#, "model not found"),
        (r#"{"error":{"message":"quota","type":"insufficient_quota"}}"#, "quota"),
        (
            r#"{"detail":[{"loc":["body"],"msg":"field required"},{"msg":"too long"}]}"#,
            "field required; too long",
        ),
        (r#"{"detail":"Not Found"}"#, "Not Found"),
        (r#"{"object":"error","message":"no such model","code":404}"#, "no such model"),
    ] {
        assert_eq!(ErrorBody::parse(422, body.as_bytes()).message, message);
    }
    for (caller, body) in [
        (Dialect::Anthropic, r#"{"error":{"message":"quota"}}"#),
        (Dialect::Anthropic, r#"{"object":"error","message":"quota"}"#),
        (Dialect::OpenAi, r#"{"type":"error","error":{"type":"api_error","message":"quota"}}"#),
    ] {
        let failed = translator(caller).response(body.as_bytes(), 0);
        assert_eq!(failed, Err(DialectError::Reported("quota".to_owned())), "{body}");
    }
    let (out, fed_well, _) = fed(Dialect::Anthropic, "data: {\"error\":\"boom\"}\n\n");
    assert_eq!(fed_well, Ok(()));
    assert!(out.contains(r#""message":"boom""#), "{out}");
}

#[test]
fn what_cannot_be_read_is_not_quoted() {
    let (_, fed_well, _) = fed(Dialect::Anthropic, "data: {\"choices\":\"jane@example.com\"}\n\n");
    let error = fed_well.unwrap_err();
    assert!(!error.to_string().contains("jane"), "{error}");
    let mut out = Vec::new();
    translator(Dialect::OpenAi).stream(StreamSettings::default()).write_error(&error, &mut out);
    let out = String::from_utf8(out).unwrap();
    assert!(out.starts_with("data: {\"error\":") && out.ends_with("\n\n"), "{out}");
}
