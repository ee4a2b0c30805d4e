//! The exact bytes of each dialect. After an intended change: `UPDATE_EXPECT=1 cargo test -p
//! plimsoll-mock`, and read the difference.

use std::path::Path;

use crate::support::{Client, chat, spawn};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

/// Compares with `golden/NAME.txt`.
fn check(name: &str, response: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    expect_test::expect_file![folder.join(format!("{name}.txt"))].assert_eq(response);
}

/// The response to one request: status, content type and body.
fn post(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    post_to("", path, headers, body)
}

/// The same of a model with this setting.
fn post_to(setting: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mock = spawn(&format!("{{seed: 5, other_models: {{dimensions: 4{setting}}}}}"));
    let headers = [&[("x-request-id", "golden")], headers].concat();
    let response = Client::connect(&mock).post(path, &headers, body);
    assert!(response.complete && response.error.is_none(), "{response:?}");
    assert_eq!(response.header("x-request-id"), Some("golden"));
    let content_type = response.header("content-type").unwrap();
    format!("{} {content_type}\n{}", response.status, response.text())
}

const TEXT: &[(&str, &str)] = &[("x-mock-output-tokens", "3")];
const TOOL: &[(&str, &str)] = &[("x-mock-output-tokens", "2"), ("x-mock-tool-call", "true")];
const ERROR: &[(&str, &str)] = &[("x-mock-output-tokens", "3"), ("x-mock-fault", "error@1")];

/// One of three tokens is reasoning.
fn post_reasoning(path: &str, body: &str) -> String {
    post_to(", reasoning_share: 0.34", path, TEXT, body)
}

#[test]
fn chat_completions() {
    let stream = chat("12345678", r#","stream":true"#);
    let usage = chat("12345678", r#","stream":true,"stream_options":{"include_usage":true}"#);
    check("chat-stream", &post(CHAT, TEXT, &stream));
    check("chat-stream-usage-reasoning", &post_reasoning(CHAT, &usage));
    check("chat-stream-tool", &post(CHAT, TOOL, &stream));
    check("chat-stream-error", &post(CHAT, ERROR, &stream));
    check("chat-whole", &post_reasoning(CHAT, &chat("12345678", "")));
    check("chat-whole-tool", &post(CHAT, TOOL, &chat("12345678", "")));
    check("chat-503", &post(CHAT, &[("x-mock-status", "503")], &stream));
}

#[test]
fn responses() {
    let stream = responses_body(r#","stream":true"#);
    check("responses-stream", &post(RESPONSES, TEXT, &stream));
    check("responses-stream-reasoning", &post_reasoning(RESPONSES, &stream));
    check("responses-stream-tool", &post(RESPONSES, TOOL, &stream));
    check("responses-stream-error", &post(RESPONSES, ERROR, &stream));
    check("responses-whole", &post_reasoning(RESPONSES, &responses_body("")));
    check("responses-429", &post(RESPONSES, &[("x-mock-status", "429")], &stream));
}

fn responses_body(extra: &str) -> String {
    format!(r#"{{"model":"m","instructions":"1234","input":"12345"{extra}}}"#)
}

#[test]
fn messages() {
    let stream = messages_body(r#","stream":true"#);
    check("messages-stream", &post(MESSAGES, TEXT, &stream));
    check("messages-stream-reasoning", &post_reasoning(MESSAGES, &stream));
    check("messages-stream-tool", &post(MESSAGES, TOOL, &stream));
    check("messages-stream-error", &post(MESSAGES, ERROR, &stream));
    check("messages-whole", &post_reasoning(MESSAGES, &messages_body("")));
    check("messages-whole-tool", &post(MESSAGES, TOOL, &messages_body("")));
    check("messages-500", &post(MESSAGES, &[("x-mock-status", "500")], &stream));
}

fn messages_body(extra: &str) -> String {
    chat("12345678", &format!(r#","system":"1234","max_tokens":9{extra}"#))
}

#[test]
fn text_completions() {
    let body = |extra| format!(r#"{{"model":"m","prompt":"12345678"{extra}}}"#);
    check("completions-stream", &post(COMPLETIONS, TEXT, &body(r#","stream":true"#)));
    check("completions-whole", &post(COMPLETIONS, TEXT, &body("")));
}

#[test]
fn embeddings() {
    let body = r#"{"model":"e","input":["1234","123456789"]}"#;
    check("embeddings", &post("/v1/embeddings", &[], body));
}

#[test]
fn malformed_requests_get_errors_in_the_shape_of_their_dialect() {
    check("chat-malformed", &post(CHAT, &[], "{"));
    check("messages-malformed", &post(MESSAGES, &[], r#"{"model":"m"}"#));
    check("embeddings-malformed", &post("/v1/embeddings", &[], r#"{"model":"m"}"#));
    check("chat-unknown-header", &post(CHAT, &[("x-mock-tfft", "1ms")], &chat("x", "")));
}
