//! Tests of the usage observer.

use super::*;

fn observe(endpoint: Endpoint, stream: &[u8], chunk: usize) -> (Option<Usage>, u64, StreamStatus) {
    let mut observer = UsageObserver::stream(endpoint);
    let contents: u64 = stream.chunks(chunk).map(|bytes| observer.feed(bytes)).sum();
    assert_eq!(contents, observer.content_events());
    (observer.usage(), observer.content_events(), observer.finish())
}

#[expect(clippy::unnecessary_wraps, reason = "the tests compare it with an Option")]
fn usage(prompt: u64, completion: u64, cached: u64) -> Option<Usage> {
    Some(Usage { prompt, completion, cached })
}

const CHAT: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}"#,
    "\n\n: ping\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"x","content":null}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta": {"tool_calls": [{"index":0,"function":{"arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage": {"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}"#,
    "\n\ndata: [DONE]\n\n",
);

const MESSAGES: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"usage":{"input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1}}}"#,
    "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"usage\""}}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#,
    "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.created\n",
    r#"data: {"type":"response.created","response":{"usage":null}}"#,
    "\n\nevent: response.output_text.delta\n",
    r#"data: {"type":"response.output_text.delta","delta":"hi"}"#,
    "\n\nevent: response.completed\n",
    r#"data: {"type":"response.completed","response":{"usage":{"input_tokens":6,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}}}"#,
    "\n\n",
);

#[test]
fn all_endpoints_are_observed_with_any_chunk_size() {
    let rows = [
        (Endpoint::Chat, CHAT, usage(5, 3, 0), 3),
        (Endpoint::Messages, MESSAGES, usage(5, 4, 3), 1),
        (Endpoint::Responses, RESPONSES, usage(6, 2, 1), 1),
    ];
    for (endpoint, stream, usage, contents) in rows {
        for chunk in [usize::MAX, 1, 13, 100] {
            let observed = observe(endpoint, stream.as_bytes(), chunk);
            assert_eq!(
                observed,
                (usage, contents, StreamStatus::Finished),
                "{endpoint:?} by {chunk}"
            );
        }
    }
}

#[test]
fn event_names_are_not_needed() {
    let lines = MESSAGES.split_inclusive('\n');
    let unnamed: String = lines.filter(|line| !line.starts_with("event")).collect();
    let observed = observe(Endpoint::Messages, unnamed.as_bytes(), 9);
    assert_eq!(observed, (usage(5, 4, 3), 1, StreamStatus::Finished));
}

#[test]
fn a_stream_without_its_last_event_is_truncated() {
    for (endpoint, stream) in
        [(Endpoint::Chat, CHAT), (Endpoint::Messages, MESSAGES), (Endpoint::Responses, RESPONSES)]
    {
        let bytes = stream.as_bytes();
        let status = |lacking: usize| {
            let mut observer = UsageObserver::stream(endpoint);
            bytes[..bytes.len() - lacking].chunks(50).for_each(|bytes| _ = observer.feed(bytes));
            (observer.finish(), observer.is_answer())
        };
        for lacking in 0..3 {
            assert_eq!(status(lacking), (StreamStatus::Finished, true), "{endpoint:?} {lacking}");
        }
        assert_eq!(status(3), (StreamStatus::Truncated, false), "{endpoint:?}");
    }
}

#[test]
fn a_stream_without_a_good_reason_for_its_end_is_no_answer() {
    let is_answer = |endpoint, stream: &str| {
        let mut observer = UsageObserver::stream(endpoint);
        observer.feed(stream.as_bytes());
        assert_eq!(observer.finish(), StreamStatus::Finished, "{stream}");
        observer.is_answer()
    };
    for (reason, expected) in [
        (r#""finish_reason":"stop""#, true),
        (r#""finish_reason": "length""#, true),
        (r#""finish_reason":"content_filter""#, false),
        (r#""finish_reason":"error""#, false),
        (r#""finish_reason":"insufficient_system_resource""#, false),
        (r#""finish_reason":null"#, false),
        (r#""index":0"#, false),
        (r#""finish_reason":"error"},{"finish_reason":"stop""#, false),
    ] {
        let stream = CHAT.replace(r#""finish_reason":"stop""#, reason);
        assert_eq!(is_answer(Endpoint::Chat, &stream), expected, "{reason}");
    }
    for (reason, expected) in [("\"max_tokens\"", true), ("\"refusal\"", false), ("null", false)] {
        let stream = MESSAGES.replace("\"end_turn\"", reason);
        assert_eq!(is_answer(Endpoint::Messages, &stream), expected, "{reason}");
    }
    for (details, expected) in [
        ("null", true),
        (r#"{"reason":"max_output_tokens"}"#, true),
        (r#"{"reason":"content_filter"}"#, false),
    ] {
        let response = format!(r#""response":{{"incomplete_details":{details},"usage":{{"input"#);
        let stream = RESPONSES.replace(r#""response":{"usage":{"input"#, &response);
        assert_eq!(is_answer(Endpoint::Responses, &stream), expected, "{details}");
    }
}

#[test]
fn an_error_event_is_a_failure() {
    let chat = b"data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\"}}\n\n";
    assert_eq!(observe(Endpoint::Chat, chat, 9).2, StreamStatus::Failed);
    let messages =
        b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    assert_eq!(observe(Endpoint::Messages, messages, 9).2, StreamStatus::Failed);
}

#[test]
fn content_is_reported_with_the_chunk_that_completes_its_event() {
    let mut observer = UsageObserver::stream(Endpoint::Messages);
    let (before, after) = MESSAGES.split_at(MESSAGES.find("event: message_delta").unwrap());
    assert_eq!(observer.feed(&before.as_bytes()[..before.len() - 1]), 0);
    assert_eq!(observer.usage(), usage(5, 1, 3), "the prompt tokens are known already");
    assert_eq!(observer.feed(b"\n"), 1);
    assert_eq!(observer.feed(after.as_bytes()), 0);
}

#[test]
fn a_whole_body_is_read_at_its_end() {
    let body = br#"{"id":"x","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
    let mut observer = UsageObserver::body(Endpoint::Chat);
    body.chunks(7).for_each(|bytes| assert_eq!(observer.feed(bytes), 0));
    assert_eq!(observer.observed.status, StreamStatus::Truncated);
    assert_eq!(
        (observer.finish(), observer.usage(), observer.content_events()),
        (StreamStatus::Finished, usage(5, 3, 0), 1)
    );
    let mut observer = UsageObserver::body(Endpoint::Chat);
    observer.feed(&body[..body.len() - 1]);
    assert_eq!((observer.finish(), observer.usage()), (StreamStatus::Truncated, None));
}

#[test]
fn a_stream_with_a_too_long_event_is_not_observed() {
    let mut observer = UsageObserver::stream(Endpoint::Chat);
    observer.feed(&vec![b'x'; MAX_EVENT_BYTES + 1]);
    observer.feed(b"\n\ndata: [DONE]\n\n");
    assert_eq!((observer.usage(), observer.finish()), (None, StreamStatus::Truncated));
}
