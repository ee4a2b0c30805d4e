//! Non-streamed responses.

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect};

use crate::support::{EVENTS, JSON, Read, decoder, read};

/// Reads JSON with a valid head, if no stream was requested.
fn json(dialect: Dialect, body: &str) -> Read {
    read(&mut decoder(dialect, false), (200, JSON), [body.as_bytes()])
}

#[test]
fn whole_responses_give_text_finish_reason_and_usage_but_no_deltas() {
    for (dialect, body, text, events) in [
        (
            Dialect::OpenaiChat,
            r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Ahoy\n🚢","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12}}"#,
            "Ahoy\n🚢",
            vec!["finish: stop", "usage: 9 in, 12 out, 0 cached, 0 reasoning"],
        ),
        (
            Dialect::OpenaiChat,
            r#"{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
            "",
            vec!["finish: tool_calls"],
        ),
        (
            Dialect::OpenaiResponses,
            r#"{"status":"completed","error":null,"output":[{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":"Ahoy"},{"type":"refusal","refusal":" No."}]},{"type":"function_call","name":"f","arguments":"{}"}],"usage":{"input_tokens":9,"output_tokens":12,"output_tokens_details":{"reasoning_tokens":3}}}"#,
            "Ahoy No.",
            vec!["finish: completed", "usage: 9 in, 12 out, 0 cached, 3 reasoning"],
        ),
        (
            Dialect::AnthropicMessages,
            r#"{"type":"message","content":[{"type":"thinking","thinking":"Hm","signature":"s"},{"type":"text","text":"Ahoy"},{"type":"tool_use","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"cache_read_input_tokens":4,"cache_creation_input_tokens":null,"output_tokens":12}}"#,
            "Ahoy",
            vec!["finish: tool_use", "usage: 9 in, 12 out, 4 cached, 0 reasoning"],
        ),
        (
            Dialect::OpenaiEmbeddings,
            r#"{"object":"list","data":[{"index":0,"embedding":[0.1,-2e3]},{"index":1,"embedding":"AAAA"}],"usage":{"prompt_tokens":9,"total_tokens":9}}"#,
            "",
            vec!["usage: 9 in, ? out, 0 cached, 0 reasoning"],
        ),
    ] {
        let read = json(dialect, body);
        assert_eq!(read.outcome, Outcome::Completed, "{body}");
        assert_eq!(read.text, text, "{body}");
        assert_eq!(read.events, events, "{body}");
    }
}

#[test]
fn an_error_object_in_a_success_is_an_error() {
    for dialect in [
        Dialect::OpenaiChat,
        Dialect::OpenaiResponses,
        Dialect::OpenaiEmbeddings,
        Dialect::AnthropicMessages,
    ] {
        let read = json(dialect, r#"{"error":{"message":"boom","type":"t","code":"c"}}"#);
        assert_eq!(read.outcome, Outcome::Failed(ErrorClass::StreamError), "{}", dialect.name());
        assert_eq!(read.events, ["error: stream_error: boom"]);
        let detail = read.detail.unwrap();
        assert_eq!((detail.kind.as_deref(), detail.code.as_deref()), (Some("t"), Some("c")));
    }
}

#[test]
fn a_body_of_the_wrong_shape_is_malformed() {
    for (dialect, body) in [
        (Dialect::OpenaiChat, ""),
        (Dialect::OpenaiChat, "{\"choices\":[{\"message\":{}}]"),
        (Dialect::OpenaiChat, "{}"),
        (Dialect::OpenaiChat, "{\"choices\":[]}"),
        (Dialect::OpenaiChat, "{\"choices\":[{}]}"),
        (Dialect::OpenaiResponses, "{\"status\":\"completed\"}"),
        (Dialect::OpenaiEmbeddings, "{\"data\":[]}"),
        (Dialect::OpenaiEmbeddings, "{\"data\":{}}"),
        (Dialect::AnthropicMessages, "{\"type\":\"message\"}"),
        (Dialect::AnthropicMessages, "{\"content\":\"text\"}"),
    ] {
        let read = json(dialect, body);
        assert_eq!(read.outcome, Outcome::Failed(ErrorClass::MalformedBody), "{body}");
        assert_eq!(read.events.len(), 1, "{body}");
    }
    let bytes: &[u8] = b"{\"choices\":[{\"message\":{\"content\":\"x\"}}],\"id\":\"\xff\"}";
    let read = read(&mut decoder(Dialect::OpenaiChat, false), (200, JSON), [bytes]);
    assert_eq!(read.outcome, Outcome::Failed(ErrorClass::MalformedBody));
}

#[test]
fn requested_json_must_have_its_content_type() {
    let body = r#"{"choices":[{"message":{"content":"x"}}]}"#;
    for (content_type, outcome) in [
        (JSON, Outcome::Completed),
        (Some("application/vnd.api+json; v=1"), Outcome::Completed),
        (None, Outcome::Completed),
        (EVENTS, Outcome::Failed(ErrorClass::ContentType)),
        (Some("text/plain"), Outcome::Failed(ErrorClass::ContentType)),
    ] {
        let mut decoder = decoder(Dialect::OpenaiChat, false);
        let read = read(&mut decoder, (200, content_type), [body.as_bytes()]);
        assert_eq!(read.outcome, outcome, "{content_type:?}");
    }
}

#[test]
fn embeddings_are_json_even_if_a_stream_was_requested() {
    let mut decoder = decoder(Dialect::OpenaiEmbeddings, true);
    let read = read(&mut decoder, (200, JSON), [&br#"{"data":[{}]}"#[..]]);
    assert_eq!(read.outcome, Outcome::Completed);
}

#[test]
fn plain_http_counts_bytes_and_parses_nothing() {
    for content_type in [None, JSON, EVENTS, Some("image/png")] {
        let mut decoder = decoder(Dialect::Http, true);
        let read = read(&mut decoder, (204, content_type), [&b"\xff{"[..], b"data: x\n\n"]);
        assert_eq!((read.outcome, read.received), (Outcome::Completed, 11));
        assert!(read.events.is_empty());
    }
}

#[test]
fn a_body_larger_than_the_limit_fails() {
    for dialect in [Dialect::OpenaiChat, Dialect::Http] {
        let mut decoder = decoder(dialect, false);
        let limit = vec![b' '; 20_000];
        let fits = read(&mut decoder, (200, JSON), [&limit[..]]);
        assert_ne!(fits.outcome, Outcome::Failed(ErrorClass::BodyTooLarge));
        let read = read(&mut decoder, (200, JSON), [&limit[..], b" ", b"more"]);
        assert_eq!(read.outcome, Outcome::Failed(ErrorClass::BodyTooLarge));
        assert_eq!((read.events.len(), read.received), (1, 20_005));
    }
}

#[test]
fn a_failure_is_reported_as_soon_as_it_is_found() {
    let mut decoder = decoder(Dialect::OpenaiChat, true);
    decoder.head(200, EVENTS.map(str::as_bytes));
    decoder.feed(b"data: {\n", &mut |_| {});
    assert_eq!(decoder.failure(), None);
    decoder.feed(b"\n", &mut |_| {});
    assert_eq!(decoder.failure(), Some(ErrorClass::MalformedBody));
}

#[test]
fn a_response_without_a_head_was_closed_early() {
    let mut decoder = decoder(Dialect::OpenaiChat, true);
    decoder.feed(b"data: [DONE]\n\n", &mut |_| {});
    assert_eq!(decoder.finish(), Outcome::Failed(ErrorClass::ClosedEarly));
}

#[test]
fn a_reset_decoder_keeps_nothing_of_the_response_before() {
    let whole = crate::streams::CHAT.as_bytes();
    let mut decoder = decoder(Dialect::OpenaiChat, true);
    let first = read(&mut decoder, (200, EVENTS), [whole]);
    decoder.head(200, EVENTS.map(str::as_bytes));
    decoder.feed(&whole[..500], &mut |_| {});
    decoder.reset();
    assert_eq!((decoder.text(), decoder.received(), decoder.failure()), ("", 0, None));
    assert_eq!(decoder.usage(), plimsoll_measure::Usage::default());
    read(&mut decoder, (500, JSON), [&b"broken"[..]]);
    assert_eq!(read(&mut decoder, (200, EVENTS), [whole]), first);
}

#[test]
fn text_is_kept_only_on_request() {
    let mut decoder = Decoder::new(Dialect::OpenaiChat, true, DecoderOptions::default());
    let read = read(&mut decoder, (200, EVENTS), [crate::streams::CHAT.as_bytes()]);
    assert_eq!((read.outcome, read.text.as_str()), (Outcome::Completed, ""));
}
