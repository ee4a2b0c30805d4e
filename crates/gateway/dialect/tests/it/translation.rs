//! Requests, responses and streams in both directions against files in `tests/golden`. The files
//! are written by hand from the public API references, so they are never refreshed from our output.
//! JSON is compared by value, streams event by event.

use std::path::PathBuf;

use plimsoll_gateway_dialect::{Dialect, LimitName, StreamSettings, Translator};
use serde_json::Value;

const CREATED: u64 = 1_700_000_000;

fn golden(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn from_openai() -> Translator {
    Translator::between(Dialect::OpenAi, Dialect::Anthropic).unwrap()
}

fn from_anthropic() -> Translator {
    Translator::between(Dialect::Anthropic, Dialect::OpenAi).unwrap()
}

#[test]
fn openai_requests_are_translated() {
    for name in ["request_tools", "request_plain", "request_named_tool"] {
        let request = from_openai()
            .request(&golden(&format!("{name}.from_openai.json")), LimitName::default());
        let expected = golden(&format!("{name}.to_anthropic.json"));
        assert_eq!(json(&request.unwrap()), json(&expected), "{name}");
    }
}

#[test]
fn anthropic_requests_are_translated() {
    for name in ["request_tools", "request_plain"] {
        let request = from_anthropic()
            .request(&golden(&format!("{name}.from_anthropic.json")), LimitName::default());
        let expected = golden(&format!("{name}.to_openai.json"));
        assert_eq!(json(&request.unwrap()), json(&expected), "{name}");
    }
}

#[test]
fn the_limit_has_the_name_that_the_provider_knows() {
    let body = golden("request_plain.from_anthropic.json");
    let limit = json(&body)["max_tokens"].clone();
    for (name, known, other) in [
        (LimitName::MaxCompletionTokens, "max_completion_tokens", "max_tokens"),
        (LimitName::MaxTokens, "max_tokens", "max_completion_tokens"),
    ] {
        let request = json(&from_anthropic().request(&body, name).unwrap());
        assert_eq!((&request[known], request.get(other)), (&limit, None), "{name:?}");
    }
}

#[test]
fn empty_texts_are_not_sent_to_anthropic() {
    let text = |text: &str| serde_json::json!({"type": "text", "text": text});
    let call = serde_json::json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let asked = serde_json::json!({"model": "m", "messages": [
        {"role": "system", "content": ""},
        {"role": "user", "content": " \n"},
        {"role": "user", "content": [text(""), text("hello")]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "user", "content": [text("")]},
    ]});
    let request = from_openai().request(asked.to_string().as_bytes(), LimitName::default());
    assert_eq!(
        json(&request.unwrap()),
        serde_json::json!({"model": "m", "max_tokens": 4096, "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
        ]})
    );
    let nothing = serde_json::json!({"model": "m", "messages": [{"role": "user", "content": ""}]});
    let refused = from_openai().request(nothing.to_string().as_bytes(), LimitName::default());
    assert_eq!(refused.unwrap_err().field(), Some("messages"));
}

#[test]
fn responses_are_translated() {
    let response = from_anthropic().response(&golden("answer_tools.from_openai.json"), CREATED);
    assert_eq!(json(&response.unwrap()), json(&golden("answer_tools.to_anthropic.json")));
    let response = from_openai().response(&golden("answer_tools.from_anthropic.json"), CREATED);
    assert_eq!(json(&response.unwrap()), json(&golden("answer_tools.to_openai.json")));
}

/// The lines of each event, with JSON data parsed.
fn events(stream: &[u8]) -> Vec<Vec<Result<Value, String>>> {
    let text = str::from_utf8(stream).unwrap();
    assert!(text.ends_with("\n\n"), "the last event is complete");
    text.trim_end()
        .split("\n\n")
        .map(|event| {
            event
                .lines()
                .map(|line: &str| {
                    let data = line
                        .strip_prefix("data: ")
                        .and_then(|data| serde_json::from_str(data).ok());
                    data.ok_or_else(|| line.to_owned())
                })
                .collect()
        })
        .collect()
}

fn translated(translator: Translator, stream: &[u8], chunk: usize) -> Vec<u8> {
    let settings = StreamSettings { created: CREATED, include_usage: true, prompt_tokens: 9 };
    let mut translation = translator.stream(settings);
    let mut out = Vec::new();
    for bytes in stream.chunks(chunk) {
        translation.feed(bytes, &mut out).unwrap();
    }
    translation.finish(&mut out).unwrap();
    assert!(translation.is_finished());
    out
}

#[test]
fn streams_are_translated_with_any_chunk_size() {
    let rows = [
        (from_anthropic(), "stream_tools.from_openai.sse", "stream_tools.to_anthropic.sse"),
        (from_openai(), "stream_tools.from_anthropic.sse", "stream_tools.to_openai.sse"),
    ];
    for (translator, source, expected) in rows {
        let source = golden(source);
        for chunk in [usize::MAX, 1, 7] {
            let got = translated(translator, &source, chunk);
            assert_eq!(events(&got), events(&golden(expected)));
        }
    }
}

#[test]
fn every_event_is_translated_at_once() {
    let rows = [
        (from_anthropic(), "stream_tools.from_openai.sse", vec![1, 2, 1, 1, 2, 1, 1, 3, 1, 1, 1]),
        (
            from_openai(),
            "stream_tools.from_anthropic.sse",
            vec![1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 2],
        ),
    ];
    for (translator, source, expected) in rows {
        let settings = StreamSettings { include_usage: true, ..StreamSettings::default() };
        let mut stream = translator.stream(settings);
        let mut counts = Vec::new();
        for event in golden(source).split_inclusive_events() {
            let mut out = Vec::new();
            stream.feed(event, &mut out).unwrap();
            counts.push(if out.is_empty() { 0 } else { events(&out).len() });
        }
        assert_eq!(counts, expected, "{source}");
    }
}

trait SplitEvents {
    fn split_inclusive_events(&self) -> Vec<&[u8]>;
}

impl SplitEvents for Vec<u8> {
    fn split_inclusive_events(&self) -> Vec<&[u8]> {
        str::from_utf8(self).unwrap().split_inclusive("\n\n").map(str::as_bytes).collect()
    }
}

#[test]
fn usage_is_only_reported_if_the_caller_asks_for_it() {
    let source = golden("stream_tools.from_anthropic.sse");
    let mut stream = from_openai().stream(StreamSettings::default());
    let mut out = Vec::new();
    stream.feed(&source, &mut out).unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("usage"));
}
