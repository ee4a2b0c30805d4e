//! Tests of the translation of errors, and of requests and streams that cannot be translated.

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
        let error = translator(*caller).request(body.as_bytes(), None).expect_err(body);
        assert_eq!((error.status(), error.field()), (400, Some(*field)), "{error}");
    }
}

#[test]
fn deeply_nested_tool_call_arguments_are_rejected() {
    let arguments = format!("{}{}", r#"{\"a\":"#.repeat(100), "}".repeat(100));
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"assistant","tool_calls":[{{"id":"a","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}]}}]}}"#
    );
    assert!(translator(Dialect::OpenAi).request(body.as_bytes(), None).is_err());
}

#[test]
fn finish_reasons_survive_a_round_trip() {
    for reason in ["stop", "length", "tool_calls", "content_filter"] {
        assert_eq!(finish_reason::to_openai(finish_reason::to_anthropic(reason)), reason);
    }
    assert_eq!(finish_reason::to_openai("stop_sequence"), "stop");
    assert_eq!(finish_reason::to_anthropic("function_call"), "tool_use");
}

#[test]
fn upstream_errors_are_translated() {
    let anthropic = br#"{"type":"error","error":{"type":"overloaded_error","message":"Over\"loaded"},"request_id":"r"}"#;
    let (status, body) = translator(Dialect::OpenAi).error(529, anthropic);
    let expected = r#"{"error":{"message":"Over\"loaded","type":"server_error","param":null,"code":"overloaded"}}"#;
    assert_eq!((status, str::from_utf8(&body).unwrap()), (503, expected));
    let openai = br#"{"error":{"message":"Slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;
    let (status, body) = translator(Dialect::Anthropic).error(429, openai);
    let expected = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#;
    assert_eq!((status, str::from_utf8(&body).unwrap()), (429, expected));
}

#[test]
fn the_body_of_an_unknown_error_is_not_repeated() {
    let (status, body) = translator(Dialect::Anthropic).error(502, b"<html>secret</html>");
    let expected = r#"{"type":"error","error":{"type":"api_error","message":"the upstream answered with status 502"}}"#;
    assert_eq!((status, str::from_utf8(&body).unwrap()), (502, expected));
}

fn fed(
    caller: Dialect,
    stream: &str,
) -> (String, Result<(), DialectError>, Result<(), DialectError>) {
    let mut translation = translator(caller).stream(StreamSettings::default());
    let mut out = Vec::new();
    let fed = translation.feed(stream.as_bytes(), &mut out);
    (String::from_utf8(out).unwrap(), fed, translation.finish())
}

#[test]
fn an_error_event_is_translated_and_ends_the_stream() {
    let source = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let (out, fed_well, finished) = fed(Dialect::OpenAi, source);
    assert_eq!(
        out,
        "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\",\"param\":null,\"code\":\"overloaded\"}}\n\n"
    );
    assert_eq!((fed_well, finished), (Ok(()), Ok(())));
    let source = "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\",\"code\":500}}\n\ndata: [DONE]\n\n";
    let (out, ..) = fed(Dialect::Anthropic, source);
    assert_eq!(
        out,
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"no\"}}\n\n"
    );
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

#[test]
fn interleaved_tool_calls_are_rejected() {
    let call = |index: u8| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"c\",\"function\":{{\"name\":\"f\",\"arguments\":\"1\"}}}}]}}}}]}}\n\n"
        )
    };
    let (_, fed_well, _) = fed(Dialect::Anthropic, &(call(0) + &call(1) + &call(0)));
    assert!(matches!(fed_well, Err(DialectError::InvalidResponse(_))));
}
