//! Tests of the request view.

use super::*;

fn view(endpoint: Endpoint, body: &str) -> RequestView {
    RequestView::read(endpoint, body.as_bytes()).unwrap()
}

#[test]
fn a_chat_completion_is_read() {
    let body = r#"{"messages": [{"role":"system","content":"Be brief."},
        {"role":"user","content":[{"type":"text","text":"A \"cat\"?"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
            "function":{"name":"f","arguments":"{\"q\":1}"}}]},
        {"role":"tool","tool_call_id":"c","content":"drop table"}],
        "model": "gpt-4o", "stream": true, "stream_options": {"include_usage": true},
        "max_completion_tokens": 20, "tools": [{"type":"function"}], "seed": 5}"#;
    let view = view(Endpoint::Chat, body);
    assert_eq!(view.model, "gpt-4o");
    assert_eq!(view.streaming, Streaming::WithUsage);
    assert_eq!(view.max_tokens, Some(20));
    // Be brief. A "cat"? {"q":1} drop table: 9, 8, 7 and 10 bytes
    assert_eq!(view.prompt_tokens, 3 + 2 + 2 + 3);
}

#[test]
fn a_messages_request_is_read() {
    let body = r#"{"model":"c","max_tokens":7,"messages":[{"role":"user","content":[
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},
        {"type":"document","source":{"type":"text","media_type":"text/plain","data":"a page"}},
        {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"result"}]}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"tool_use","id":"t","name":"f","input":{"a":["deep",{"b":"deeper"}],"n":1}}]}],
        "system":[{"type":"text","text":"last"}]}"#;
    let view = view(Endpoint::Messages, body);
    assert_eq!(view.streaming, Streaming::No);
    assert_eq!(view.max_tokens, Some(7));
    // a page, result, deep, deeper, last
    assert_eq!(view.prompt_tokens, 2 + 2 + 1 + 2 + 1);
}

#[test]
fn responses_and_embeddings_requests_are_read() {
    let one = view(Endpoint::Responses, r#"{"model":"m","instructions":"i","input":"text"}"#);
    assert_eq!(one.prompt_tokens, 1 + 1);
    let items = r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"t"}]},
        {"type":"function_call_output","call_id":"c","output":"o"}],"max_output_tokens":3}"#;
    let items = view(Endpoint::Responses, items);
    assert_eq!((items.prompt_tokens, items.max_tokens), (1 + 1, Some(3)));
    let many = view(Endpoint::Embeddings, r#"{"model":"m","input":["abcd","efghi"]}"#);
    assert_eq!(many.prompt_tokens, 1 + 2);
    let ids = view(Endpoint::Embeddings, r#"{"model":"m","input":[[1,2],[3]]}"#);
    assert_eq!(ids.prompt_tokens, 3);
    assert_eq!(view(Endpoint::Embeddings, r#"{"model":"m","input":[1,2]}"#).prompt_tokens, 2);
}

/// The case, a part of the message, and the body.
const REJECTED: &[(&str, &str, &str)] = &[
    ("not an object", "expected an object", "[1]"),
    ("fields as an array", "expected an object", r#"["m", [{"role":"user","content":"x"}]]"#),
    ("cut short", "EOF", r#"{"model":"m","messages":[{"role":"user""#),
    ("something after it", "trailing", r#"{"model":"m","messages":[{"role":"u"}]} x"#),
    ("no model", "model: this field is required", r#"{"messages":[{"role":"user"}]}"#),
    ("null model", "model: this field is required", r#"{"model":null,"messages":[]}"#),
    ("model a number", "model: must be a string", r#"{"model":5,"messages":[]}"#),
    ("empty model", "model: must not be empty", r#"{"model":"","messages":[]}"#),
    ("model twice", "duplicate field `model`", r#"{"model":"a","model":"b","messages":[]}"#),
    ("escaped twin", "duplicate field `model`", r#"{"model":"a","m\u006fdel":"b","messages":[]}"#),
    ("no messages", "messages: this field is required", r#"{"model":"m"}"#),
    ("messages a string", "messages: must be an array", r#"{"model":"m","messages":"hi"}"#),
    ("no message", "messages: must not be empty", r#"{"model":"m","messages":[]}"#),
    ("message a number", "messages[1]: ", r#"{"model":"m","messages":[{"role":"user"},5]}"#),
    ("message as an array", "messages[0]: ", r#"{"model":"m","messages":[["user","x"]]}"#),
    ("no role", "messages[0].role: this", r#"{"model":"m","messages":[{"content":"x"}]}"#),
    ("role a number", "messages[0].role: must", r#"{"model":"m","messages":[{"role":5}]}"#),
    (
        "content a number",
        "messages[0].content: must be a string or an array",
        r#"{"model":"m","messages":[{"role":"user","content":5}]}"#,
    ),
    (
        "content twice",
        "messages[0]: duplicate field `content`",
        r#"{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}"#,
    ),
    (
        "text of a part a number",
        "messages[0].content[1].text: must be a string",
        r#"{"model":"m","messages":[{"role":"user","content":[{"text":"a"},{"text":[]}]}]}"#,
    ),
    (
        "half a surrogate pair",
        "messages[0].content: ",
        r#"{"model":"m","messages":[{"role":"user","content":"\ud800"}]}"#,
    ),
    (
        "stream a string",
        "stream: must be true or false",
        r#"{"model":"m","messages":[{"role":"user"}],"stream":"true"}"#,
    ),
    (
        "max_tokens negative",
        "max_tokens: must be a whole number",
        r#"{"model":"m","messages":[{"role":"user"}],"max_tokens":-1}"#,
    ),
    (
        "include_usage a number",
        "stream_options: ",
        r#"{"model":"m","messages":[{"role":"user"}],"stream":true,"stream_options":{"include_usage":1}}"#,
    ),
];

#[test]
fn invalid_requests_are_rejected_with_400_and_name_the_field() {
    for (case, message, body) in REJECTED {
        let error = RequestView::read(Endpoint::Chat, body.as_bytes()).expect_err(case);
        assert_eq!(error.status(), 400, "{case}");
        assert!(error.to_string().contains(message), "{case}: {error}");
    }
}

#[test]
fn anthropic_requires_max_tokens() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let error = RequestView::read(Endpoint::Messages, body).unwrap_err();
    assert_eq!(error.to_string(), "max_tokens: this field is required");
}

#[test]
fn invalid_utf8_and_deep_nesting_are_rejected() {
    let mut body = br#"{"model":"m","messages":[{"role":"user","content":"?"}]}"#.to_vec();
    let at = body.iter().position(|byte| *byte == b'?').unwrap();
    body[at] = 0xff;
    let error = RequestView::read(Endpoint::Chat, &body).unwrap_err();
    assert!(error.to_string().contains(&format!("not valid UTF-8 at byte {at};")), "{error}");
    let deep = format!(r#"{{"model":"m","x":{}"#, "[".repeat(500_000));
    let error = RequestView::read(Endpoint::Chat, deep.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("nested deeper than 64 levels"), "{error}");
}
