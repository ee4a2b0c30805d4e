//! The exact bytes of each dialect. After an intended change: `MOCK_GOLDEN=write cargo test -p
//! plimsoll-mock`, and read the difference.

use std::path::Path;

use crate::client::{Client, chat, spawn};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

/// Compares with `golden/NAME.txt`.
fn check(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mock/golden/{name}.txt"));
    if std::env::var_os("MOCK_GOLDEN").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(found, golden, "{name}");
}

fn ask(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mock = spawn("{seed: 5, other_models: {dimensions: 4}}");
    let headers = [&[("x-request-id", "golden")], headers].concat();
    let answer = Client::connect(&mock).post(path, &headers, body);
    assert!(answer.complete && answer.error.is_none(), "{answer:?}");
    assert_eq!(answer.header("x-request-id"), Some("golden"));
    format!("{} {}\n{}", answer.status, answer.header("content-type").unwrap(), answer.text())
}

const TEXT: &[(&str, &str)] = &[("x-mock-output-tokens", "3")];
const REASONING: &[(&str, &str)] =
    &[("x-mock-output-tokens", "3"), ("x-mock-reasoning-tokens", "1")];
const TOOL: &[(&str, &str)] = &[("x-mock-output-tokens", "2"), ("x-mock-tool-call", "true")];
const ERROR: &[(&str, &str)] = &[("x-mock-output-tokens", "3"), ("x-mock-fault", "error@1")];

#[test]
fn chat_completions() {
    let stream = chat("12345678", r#","stream":true"#);
    let usage = chat("12345678", r#","stream":true,"stream_options":{"include_usage":true}"#);
    check("chat-stream", &ask(CHAT, TEXT, &stream));
    check("chat-stream-usage-reasoning", &ask(CHAT, REASONING, &usage));
    check("chat-stream-tool", &ask(CHAT, TOOL, &stream));
    check("chat-stream-error", &ask(CHAT, ERROR, &stream));
    check("chat-whole", &ask(CHAT, REASONING, &chat("12345678", "")));
    check("chat-whole-tool", &ask(CHAT, TOOL, &chat("12345678", "")));
    check("chat-503", &ask(CHAT, &[("x-mock-status", "503")], &stream));
}

#[test]
fn responses() {
    let body =
        |extra: &str| format!(r#"{{"model":"m","instructions":"1234","input":"12345"{extra}}}"#);
    let stream = body(r#","stream":true"#);
    check("responses-stream", &ask(RESPONSES, TEXT, &stream));
    check("responses-stream-reasoning", &ask(RESPONSES, REASONING, &stream));
    check("responses-stream-tool", &ask(RESPONSES, TOOL, &stream));
    check("responses-stream-error", &ask(RESPONSES, ERROR, &stream));
    check("responses-whole", &ask(RESPONSES, REASONING, &body("")));
    check("responses-429", &ask(RESPONSES, &[("x-mock-status", "429")], &stream));
}

#[test]
fn messages() {
    let body =
        |extra: &str| chat("12345678", &format!(r#","system":"1234","max_tokens":9{extra}"#));
    let stream = body(r#","stream":true"#);
    check("messages-stream", &ask(MESSAGES, TEXT, &stream));
    check("messages-stream-reasoning", &ask(MESSAGES, REASONING, &stream));
    check("messages-stream-tool", &ask(MESSAGES, TOOL, &stream));
    check("messages-stream-error", &ask(MESSAGES, ERROR, &stream));
    check("messages-whole", &ask(MESSAGES, REASONING, &body("")));
    check("messages-whole-tool", &ask(MESSAGES, TOOL, &body("")));
    check("messages-500", &ask(MESSAGES, &[("x-mock-status", "500")], &stream));
}

#[test]
fn embeddings() {
    let body = r#"{"model":"e","input":["1234","123456789"]}"#;
    check("embeddings", &ask("/v1/embeddings", &[], body));
}

#[test]
fn malformed_requests_are_refused_in_the_shape_of_their_dialect() {
    check("chat-malformed", &ask(CHAT, &[], "{"));
    check("messages-malformed", &ask(MESSAGES, &[], r#"{"model":"m"}"#));
    check("embeddings-malformed", &ask("/v1/embeddings", &[], r#"{"model":"m"}"#));
    check("chat-unknown-header", &ask(CHAT, &[("x-mock-tfft", "1ms")], &chat("x", "")));
}
