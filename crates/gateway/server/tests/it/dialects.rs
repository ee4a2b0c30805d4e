//! Translation between the dialects, streamed and not.

use serde_json::{Value, json};

use super::support::client::{ClientResponse, post};
use super::support::provider::Provider;
use super::support::{CHAT, MESSAGES, llm, question, with};

/// The content of an answer, whatever its format.
#[derive(Debug, Default, PartialEq)]
struct ParsedAnswer {
    text: String,
    tool: Option<(String, String, Value)>,
    finish: String,
    tokens: (u64, u64),
}

fn ask(path: &str, stream: bool, text: &str) -> Value {
    let mut ask = question(text);
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    if path == CHAT {
        ask["tools"] = json!([{"type": "function",
            "function": {"name": "weather", "parameters": parameters}}]);
    } else {
        ask["tools"] = json!([{"name": "weather", "input_schema": parameters}]);
    }
    if stream {
        ask["stream"] = json!(true);
        if path == CHAT {
            ask["stream_options"] = json!({"include_usage": true});
        }
    }
    ask
}

fn tokens(usage: &Value, names: [&str; 2]) -> (u64, u64) {
    (usage[names[0]].as_u64().unwrap(), usage[names[1]].as_u64().unwrap())
}

const OPENAI: [&str; 2] = ["prompt_tokens", "completion_tokens"];
const ANTHROPIC: [&str; 2] = ["input_tokens", "output_tokens"];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn whole_chat(body: &Value) -> ParsedAnswer {
    let choice = &body["choices"][0];
    let call = &choice["message"]["tool_calls"][0];
    let tool = (!call.is_null()).then(|| {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let arguments = serde_json::from_str(arguments).unwrap();
        (text(&call["id"]), text(&call["function"]["name"]), arguments)
    });
    ParsedAnswer {
        text: text(&choice["message"]["content"]),
        tool,
        finish: text(&choice["finish_reason"]),
        tokens: tokens(&body["usage"], OPENAI),
    }
}

fn whole_message(body: &Value) -> ParsedAnswer {
    let mut parsed = ParsedAnswer {
        finish: text(&body["stop_reason"]),
        tokens: tokens(&body["usage"], ANTHROPIC),
        ..ParsedAnswer::default()
    };
    for block in body["content"].as_array().unwrap() {
        if block["type"] == "tool_use" {
            parsed.tool = Some((text(&block["id"]), text(&block["name"]), block["input"].clone()));
        } else {
            parsed.text.push_str(block["text"].as_str().unwrap());
        }
    }
    parsed
}

fn events(reply: &ClientResponse) -> Vec<Value> {
    let data = reply.frames();
    let data = data.iter().flat_map(|frame| frame.lines()).filter_map(|l| l.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn streamed_chat(reply: &ClientResponse) -> ParsedAnswer {
    assert_eq!(reply.frames().last().unwrap(), "data: [DONE]\n\n");
    let (mut parsed, mut arguments) = (ParsedAnswer::default(), String::new());
    for event in events(reply) {
        if event["usage"].is_object() {
            parsed.tokens = tokens(&event["usage"], OPENAI);
        }
        let Some(choice) = event["choices"].get(0) else { continue };
        parsed.text.push_str(&text(&choice["delta"]["content"]));
        parsed.finish.push_str(&text(&choice["finish_reason"]));
        let call = &choice["delta"]["tool_calls"][0];
        if call["id"].is_string() {
            parsed.tool = Some((text(&call["id"]), text(&call["function"]["name"]), Value::Null));
        }
        arguments.push_str(&text(&call["function"]["arguments"]));
    }
    if let Some(tool) = &mut parsed.tool {
        tool.2 = serde_json::from_str(&arguments).unwrap();
    }
    parsed
}

fn streamed_message(reply: &ClientResponse) -> ParsedAnswer {
    let (mut parsed, mut arguments) = (ParsedAnswer::default(), String::new());
    let events = events(reply);
    assert_eq!(events.first().unwrap()["type"], "message_start");
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    for event in events {
        let block = &event["content_block"];
        if block["type"] == "tool_use" {
            parsed.tool = Some((text(&block["id"]), text(&block["name"]), Value::Null));
        }
        for usage in [&event["message"]["usage"], &event["usage"]] {
            parsed.tokens.0 = usage["input_tokens"].as_u64().unwrap_or(parsed.tokens.0);
            parsed.tokens.1 = usage["output_tokens"].as_u64().unwrap_or(parsed.tokens.1);
        }
        parsed.text.push_str(&text(&event["delta"]["text"]));
        parsed.finish.push_str(&text(&event["delta"]["stop_reason"]));
        arguments.push_str(&text(&event["delta"]["partial_json"]));
    }
    if let Some(tool) = &mut parsed.tool {
        tool.2 = serde_json::from_str(&arguments).unwrap();
    }
    parsed
}

fn read(path: &str, stream: bool, reply: &ClientResponse) -> ParsedAnswer {
    match (path == CHAT, stream) {
        (true, false) => whole_chat(&reply.json()),
        (false, false) => whole_message(&reply.json()),
        (true, true) => streamed_chat(reply),
        (false, true) => streamed_message(reply),
    }
}

fn expected(path: &str, kind: &str) -> ParsedAnswer {
    let finish = match (kind, path == CHAT) {
        ("tell me", true) => "stop",
        ("tell me", false) => "end_turn",
        ("use the tool", true) => "tool_calls",
        ("use the tool", false) => "tool_use",
        (_, true) => "length",
        (_, false) => "max_tokens",
    };
    let tool = (kind == "use the tool")
        .then(|| ("call_1".to_owned(), "weather".to_owned(), json!({"city": "Oslo"})));
    let text = if tool.is_some() { "" } else { "Hello there, Löwe" };
    ParsedAnswer { text: text.to_owned(), tool, finish: finish.to_owned(), tokens: (7, 5) }
}

#[test]
fn every_caller_gets_its_own_dialect_from_every_upstream() {
    let provider = Provider::with_text(&["Hello", " there,", " Löwe"]);
    for (upstream, wanted) in [("openai", CHAT), ("anthropic", MESSAGES)] {
        let gateway = with(provider.addr, upstream, "");
        for path in [CHAT, MESSAGES] {
            for (stream, kind) in [false, true].into_iter().flat_map(|stream| {
                ["tell me", "use the tool", "be cut short"].map(|kind| (stream, kind))
            }) {
                let told = format!("{path} to {upstream}, stream {stream}, {kind}");
                let reply = post(gateway.addr(), path, &[], &ask(path, stream, kind));
                assert_eq!((reply.status, reply.broken), (200, false), "{told}: {reply:?}");
                let kind_of = reply.header("content-type").unwrap();
                let streamed = kind_of.starts_with("text/event-stream");
                assert_eq!(streamed, stream, "{told}: {kind_of}");
                assert_eq!(read(path, stream, &reply), expected(path, kind), "{told}");
                let seen = provider.seen().pop().unwrap();
                assert_eq!(seen.path, wanted, "{told}");
                assert_eq!(seen.json()["messages"][0]["role"], "user", "{told}");
            }
        }
    }
    assert_eq!(provider.count(), 24);
}

#[test]
fn equal_dialects_pass_byte_for_byte() {
    let provider = Provider::with_text(&["Hello", " there"]);
    for (upstream, path) in [("openai", CHAT), ("anthropic", MESSAGES)] {
        let gateway = with(provider.addr, upstream, "");
        let body = "{ \"stream\":true,\"model\" : \"m\",\"max_tokens\": 10,\"messages\":[{\"role\":\"user\",\
                    \"content\":\"\\u0041\"}], \"own\":[1.50]}";
        let line = format!("POST {path}");
        let reply = super::support::client::ask(gateway.addr(), &line, &[], body.as_bytes());
        let seen = provider.seen().pop().unwrap();
        assert_eq!(seen.body, body);
        let pieces = ["Hello".to_owned(), " there".to_owned()];
        let frames = super::support::provider::frames(
            &seen,
            &pieces,
            super::support::provider::AnswerKind::Text,
        );
        assert_eq!(reply.frames(), frames);
    }
}

#[test]
fn credentials_move_to_the_header_of_the_other_dialect() {
    let provider = Provider::with_text(&["x"]);
    let gateway = with(provider.addr, "anthropic", "");
    post(gateway.addr(), CHAT, &[("authorization", "Bearer k1")], &question("hi"));
    let seen = provider.seen().pop().unwrap();
    assert_eq!((seen.header("x-api-key"), seen.header("authorization")), (Some("k1"), None));
    assert!(seen.header("anthropic-version").is_some());
    let gateway = llm(provider.addr, "");
    let headers = [("x-api-key", "k2"), ("anthropic-version", "2023-06-01")];
    post(gateway.addr(), MESSAGES, &headers, &question("hi"));
    let seen = provider.seen().pop().unwrap();
    assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (Some("Bearer k2"), None));
    assert_eq!(seen.header("anthropic-version"), None);
}

#[test]
fn upstream_errors_arrive_in_the_callers_format() {
    let provider = Provider::start(|seen, wire| {
        let body = if seen.path == CHAT {
            json!({"error": {"message": "slow down", "type": "rate_limit_error", "param": null,
                "code": "rate_limit_exceeded"}})
        } else {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "slow down"}})
        };
        wire.json(if seen.path == CHAT { 429 } else { 529 }, &body)
    });
    for (upstream, path, status, kind) in [
        ("openai", CHAT, 429, "rate_limit_error"),
        ("openai", MESSAGES, 429, "rate_limit_error"),
        ("anthropic", CHAT, 503, "server_error"),
        ("anthropic", MESSAGES, 529, "overloaded_error"),
    ] {
        let gateway = with(provider.addr, upstream, "");
        let reply = post(gateway.addr(), path, &[], &question("hi"));
        let body = reply.json();
        assert_eq!(reply.status, status, "{path} to {upstream}: {body}");
        assert_eq!(body["error"]["type"], kind, "{path} to {upstream}: {body}");
        assert_eq!(body["error"]["message"], "slow down");
        assert_eq!(body["type"] == "error", path == MESSAGES, "{body}");
    }
}

#[test]
fn a_stream_truncated_by_the_upstream_is_truncated_for_the_caller() {
    let provider = Provider::start(|seen, wire| {
        wire.stream()?;
        let pieces = ["Hello".to_owned(), " there".to_owned()];
        let frames = super::support::provider::frames(
            seen,
            &pieces,
            super::support::provider::AnswerKind::Text,
        );
        for frame in &frames[..3] {
            wire.frame(frame)?;
        }
        Err(std::io::Error::other("enough"))
    });
    for upstream in ["openai", "anthropic"] {
        let gateway = with(provider.addr, upstream, "");
        for path in [CHAT, MESSAGES] {
            let reply = post(gateway.addr(), path, &[], &super::support::streamed("hi"));
            assert!(reply.broken, "{path} to {upstream}");
            assert!(!reply.text().contains("[DONE]") && !reply.text().contains("message_stop"));
        }
    }
}
